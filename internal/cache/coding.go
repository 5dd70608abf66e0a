package cache

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// coding is a way to write a body.
type coding int

// The codings that are served, the best last.
const (
	identity coding = iota
	gzipped
	brotlied
	zstandard
	numberOfCodings
)

var codingNames = [numberOfCodings]string{"identity", "gzip", "br", "zstd"}

func (c coding) String() string { return codingNames[c] }

// tiny bodies gain nothing: they fit one packet as they are.
const tiny = 1000

// Entries are encoded once and sent often, but somebody waits for the first:
// these levels take well under a millisecond for a page of 50 tools.
const (
	gzipLevel   = 6
	brotliLevel = 5
)

// zstdWriter is used for whole bodies only, which it does side by side.
var zstdWriter = func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options above are wrong
	}
	return w
}()

func (c coding) encode(body []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch c {
	case zstandard:
		return zstdWriter.EncodeAll(body, nil)
	case brotlied:
		w = brotli.NewWriterLevel(&out, brotliLevel)
	case gzipped:
		w, _ = gzip.NewWriterLevel(&out, gzipLevel) // fails for levels that do not exist
	}
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// negotiate picks the coding that a caller likes best, and among equals the
// one that we do. It fails where even the plain body is refused.
func negotiate(headers []string, size int) (coding, bool) {
	wanted := qualities(headers)
	best, found := identity, wanted[identity] > 0
	for c := gzipped; c < numberOfCodings; c++ {
		switch {
		case wanted[c] <= 0:
		case !found, size > tiny && wanted[c] >= wanted[best]:
			best, found = c, true
		}
	}
	return best, found
}

// qualities reads Accept-Encoding: how much each coding is wanted, from 0 to 1.
func qualities(headers []string) (wanted [numberOfCodings]float64) {
	wanted[identity] = least // unless something is said of it
	var named [numberOfCodings]bool
	any, anyNamed := 0.0, false
	for _, header := range headers {
		for item := range strings.SplitSeq(header, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			if name == "*" {
				any, anyNamed = quality(params), true
				continue
			}
			if name == "x-gzip" {
				name = "gzip"
			}
			for c, known := range codingNames {
				if name == known {
					wanted[c], named[c] = quality(params), true
				}
			}
		}
	}
	for c := range wanted {
		if anyNamed && !named[c] {
			wanted[c] = any
		}
	}
	return wanted
}

// least is wanted, but less than anything that is named.
const least = 0.0001

// quality reads a q-value; what is none is as good as none given.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && q >= 0 && q <= 1 {
				return q
			}
		}
	}
	return 1
}
