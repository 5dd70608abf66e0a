package files

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/compress/snappy"
)

// portableSnappy compresses to the same bytes on every processor. The library's encoder
// does not: its assembly finds other matches than its Go code.
type portableSnappy struct{ snappy.Codec }

// Encode implements compress.Codec.
func (*portableSnappy) Encode(dst, src []byte) ([]byte, error) {
	dst = binary.AppendUvarint(dst[:0], uint64(len(src)))
	for len(src) > 0 {
		block := src[:min(len(src), 1<<16)] // positions fit into 16 bits
		dst, src = appendBlock(dst, block), src[len(block):]
	}
	return dst, nil
}

const hashBits = 13

func appendBlock(dst, src []byte) []byte {
	var positions [1 << hashBits]uint16 // by the hash of the four bytes there
	start := 0                          // where the part that is not yet written begins
	for i := 1; i+4 <= len(src); {
		word := binary.LittleEndian.Uint32(src[i:])
		hash := word * 0x1e35a7bd >> (32 - hashBits)
		earlier := int(positions[hash])
		positions[hash] = uint16(i) //nolint:gosec // a block has 16 bits
		if binary.LittleEndian.Uint32(src[earlier:]) != word {
			i += 1 + (i-start)>>5 // faster through data that does not repeat
			continue
		}
		length := 4
		for i+length < len(src) && src[earlier+length] == src[i+length] {
			length++
		}
		dst = appendLiteral(dst, src[start:i])
		dst = appendCopy(dst, i-earlier, length)
		i += length
		start = i
	}
	return appendLiteral(dst, src[start:])
}

func appendLiteral(dst, text []byte) []byte {
	switch n := len(text) - 1; {
	case n < 0:
		return dst
	case n < 60:
		dst = append(dst, byte(n)<<2)
	case n < 1<<8:
		dst = append(dst, 60<<2, byte(n))
	default:
		dst = append(dst, 61<<2, byte(n), byte(n>>8)) //nolint:gosec // a block has 16 bits
	}
	return append(dst, text...)
}

func appendCopy(dst []byte, offset, length int) []byte {
	for ; length > 64; length -= min(64, length-4) { // at least four bytes remain
		dst = append(dst, byte(min(64, length-4)-1)<<2|2, byte(offset), byte(offset>>8)) //nolint:gosec // as above
	}
	if length < 12 && offset < 2048 {
		return append(dst, byte(offset>>8)<<5|byte(length-4)<<2|1, byte(offset)) //nolint:gosec // as above
	}
	return append(dst, byte(length-1)<<2|2, byte(offset), byte(offset>>8)) //nolint:gosec // as above
}
