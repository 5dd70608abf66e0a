package feed

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
)

// maxLine is the longest line of a feed, without its line break.
const maxLine = 1 << 20

var errLineTooLong = errors.New("longer than 1 MiB")

// lineReader cuts a feed, compressed or not, into lines without ever holding
// more than one of them.
type lineReader struct {
	buf    *bufio.Reader
	number int
}

// newLineReader looks at the first bytes, not at a file's name, to tell a
// compressed feed: standard input has no name.
func newLineReader(r io.Reader) (*lineReader, error) {
	raw := bufio.NewReader(r)
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var plain io.Reader = raw
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if plain, err = gzip.NewReader(raw); err != nil {
			return nil, err
		}
	}
	return &lineReader{buf: bufio.NewReaderSize(plain, maxLine+2)}, nil
}

// next returns the next line, good until the following call. A line that is
// too long is read past and told as errLineTooLong; io.EOF ends the feed.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.buf.ReadSlice('\n')
	l.number++
	switch {
	case err == bufio.ErrBufferFull:
		for err == bufio.ErrBufferFull {
			_, err = l.buf.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		return nil, errLineTooLong
	case err == io.EOF && len(line) > 0: // the last line may lack its break
	case err != nil:
		return nil, err
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if len(line) > maxLine {
		return nil, errLineTooLong
	}
	return line, nil
}

// isDamaged tells a damaged archive, which is the feed's fault, from a disk
// that cannot be read.
func isDamaged(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader)
}
