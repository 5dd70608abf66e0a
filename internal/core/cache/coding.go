package cache

import (
	"bytes"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"palmares/internal/core/negotiate"
)

// coding is a content coding.
type coding int

// The codings that are served.
const (
	identity coding = iota
	gzipped
	brotlied
	zstandard
	numberOfCodings
)

var codingNames = [numberOfCodings]string{"identity", "gzip", "br", "zstd"}

func (c coding) String() string { return codingNames[c] }

// tiny bodies gain nothing from compression: they fit one packet.
const tiny = 1000

// Entries are encoded once and sent often, but the first caller waits for it:
// these levels take well under a millisecond for a page of 50 tools.
const (
	gzipLevel   = 6
	brotliLevel = 5
)

// zstdWriter encodes whole bodies only, which is safe concurrently.
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

// negotiate picks the coding that a caller prefers. Among equals, brotli is the
// smallest; whether gzip or zstd comes next depends on the body. It fails where
// even the plain body is refused.
func (e *Entry) negotiate(headers []string) (coding, bool) {
	wanted := qualities(headers)
	best, found := identity, wanted[identity] > 0
	for _, c := range [...]coding{brotlied, gzipped, zstandard} {
		switch {
		case wanted[c] <= 0:
		case !found:
			best, found = c, true
		case len(e.forms[identity].body) <= tiny || wanted[c] < wanted[best]:
		case wanted[c] > wanted[best] || best == identity || best == gzipped && len(e.in(c).body) < len(e.in(best).body):
			best = c
		}
	}
	return best, found
}

// qualities reads Accept-Encoding: the weight of each coding, from 0 to 1.
func qualities(headers []string) (wanted [numberOfCodings]float64) {
	wanted[identity] = least // unless the header mentions it
	var named [numberOfCodings]bool
	for item := range negotiate.Items(headers) {
		// A malformed weight is ignored: the client can decode what it names.
		q := item.Quality(1)
		for c, name := range codingNames {
			if item.Name == name || item.Name == "x-gzip" && name == "gzip" {
				wanted[c], named[c] = q, true
			} else if item.Name == "*" && !named[c] {
				wanted[c] = q
			}
		}
	}
	return wanted
}

// least is the weight of a coding that is acceptable, but less than any that is named.
const least = 0.0001
