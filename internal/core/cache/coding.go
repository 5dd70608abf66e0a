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

// least is the weight of a coding that is acceptable, but less than any that is named.
const least = 0.0001

// quality reads a q-value; an invalid one counts as absent.
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
