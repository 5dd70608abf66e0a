// Package cache holds what a server retains in memory: responses ready to send,
// with their encodings and tags, and what is needed to make them. It knows
// nothing of their content.
package cache

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"palmares/internal/core/negotiate"
)

// Entry is a response that is the same for all its callers.
type Entry struct {
	header http.Header // except for what depends on the encoding
	forms  [numberOfCodings]form
	held   int // bytes that its Execute holds on to

	secret []byte // signs the tags; nil for files that are public anyway
	query  Key
}

// form is the response in one encoding. Its bytes and its tag are made once, on
// first use; its headers are then ready to be sent.
type form struct {
	encoding, tagging sync.Once
	body              []byte
	length, tag       []string
}

// NewEntry makes an entry of a body and headers, neither of which may change
// from then on. The headers must say that it varies with Accept-Encoding,
// beside whatever else it varies with. Its tags are hashes of the body, until
// a cache signs them: that is right for files that are public anyway.
func NewEntry(body []byte, header http.Header) *Entry {
	e := &Entry{header: header}
	plain := &e.forms[identity]
	plain.body, plain.length = body, []string{strconv.Itoa(len(body))}
	return e
}

// Holding adds bytes that the entry's Execute holds on to, to its weight.
func (e *Entry) Holding(bytes int) *Entry {
	e.held = bytes
	return e
}

// sign makes the tags keyed ones. They depend on the body, the query and the
// encoding alone, so every server and restart gives the same; without the
// secret, nobody can compute the tag of a body that they have not received.
// Otherwise a list of the tags of all plausible bodies in If-None-Match would
// turn a free 304 into a response.
func (e *Entry) sign(secret []byte, q Key) { e.secret, e.query = secret, q }

// tagBytes is how much of a hash makes a tag: 120 bits.
const tagBytes = 15

// tagged returns the tag of an encoding: a strong one, because another encoding
// is another sequence of bytes.
func (e *Entry) tagged(c coding) []string {
	f := &e.forms[c]
	f.tagging.Do(func() {
		hash := hmac.New(sha256.New, e.secret)
		body := sha256.Sum256(e.forms[identity].body)
		text := make([]byte, 0, 256)
		for _, part := range [...]string{string(body[:]), e.query.Operation, e.query.Variables, c.String()} {
			// Lengths keep parts apart that would read the same when joined.
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
		}
		hash.Write(text)
		f.tag = []string{`"` + base64.RawURLEncoding.EncodeToString(hash.Sum(text[:0])[:tagBytes]) + `"`}
	})
	return f.tag
}

// in returns the response in an encoding.
func (e *Entry) in(c coding) *form {
	f := &e.forms[c]
	if c != identity {
		f.encoding.Do(func() {
			f.body = c.encode(e.forms[identity].body)
			f.length = []string{strconv.Itoa(len(f.body))}
		})
	}
	return f
}

// Body returns the body without an encoding. It must not be modified.
func (e *Entry) Body() []byte { return e.forms[identity].body }

// weight returns what a response takes in memory, including the encodings that it
// may come to have.
func (e *Entry) weight() int { return 2*len(e.forms[identity].body) + 2_000 + e.held }

// Write sends a response, which is 304 for a GET, HEAD or QUERY whose caller has
// it already.
func (r Response) Write(w http.ResponseWriter, req *http.Request) error {
	w.Header()["Cache-Status"] = r.cacheStatus()
	if r.executed {
		reportExecution(w)
	}
	return r.Entry.Write(w, req)
}

func (r Response) cacheStatus() []string {
	if r.executed {
		return miss
	}
	return hit
}

// Values of Cache-Status (RFC 9211). They are shared by all responses: never
// modify them.
var hit, miss, bypass = []string{"palmares; hit"}, []string{"palmares; fwd=miss"}, []string{"palmares; fwd=bypass"}

// ExecutionReporter is a ResponseWriter that needs to know whether a response
// was executed for its request, or came from the cache.
type ExecutionReporter interface{ ReportExecution() }

func reportExecution(w http.ResponseWriter) {
	for {
		switch wrapped := w.(type) {
		case ExecutionReporter:
			wrapped.ReportExecution()
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = wrapped.Unwrap()
		default:
			return
		}
	}
}

// Write sends an entry, as Response.Write does.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request) error {
	c, ok := e.negotiate(r.Header["Accept-Encoding"])
	if !ok {
		return errNotAcceptable
	}
	header := w.Header()
	maps.Copy(header, e.header)
	if r.Method == http.MethodPost {
		delete(header, "Cache-Control") // nothing stores it
	} else {
		tag := e.tagged(c)
		header["Etag"] = tag
		if tags := r.Header["If-None-Match"]; tags != nil && matches(tags, tag[0]) {
			delete(header, "Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	f := e.in(c)
	if c != identity {
		header["Content-Encoding"] = codingHeaders[c]
	}
	header["Content-Length"] = f.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.body) // a caller that has left needs no response
	}
	return nil
}

// maxTags is how many tags of If-None-Match are compared: a client has one or
// a few, and more of them only cost time.
const maxTags = 16

// AnyTag reports whether If-None-Match is "*", which matches every response
// without knowing one.
func AnyTag(headers []string) bool {
	return slices.ContainsFunc(headers, func(header string) bool { return strings.TrimSpace(header) == "*" })
}

// matches reports whether If-None-Match names a tag, or any. Tags are compared
// weakly, as that header requires: some proxies weaken what they forward.
func matches(headers []string, tag string) bool {
	if AnyTag(headers) {
		return true
	}
	compared := 0
	for _, header := range headers {
		for rest := header; rest != ""; {
			rest = strings.TrimLeft(rest, " \t,")
			rest = strings.TrimPrefix(rest, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break // the rest is no list of tags
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 || compared == maxTags {
				break
			}
			if rest[:end+2] == tag {
				return true
			}
			rest = rest[end+2:]
			compared++
		}
	}
	return false
}

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

// codingHeaders are the values of Content-Encoding.
var codingHeaders = [numberOfCodings][]string{{"identity"}, {"gzip"}, {"br"}, {"zstd"}}

func (c coding) String() string { return codingHeaders[c][0] }

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
	if c == zstandard {
		return zstdWriter.EncodeAll(body, nil)
	}
	var out bytes.Buffer
	w := c.writer(&out)
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
		for c := range numberOfCodings {
			if name := c.String(); item.Name == name || item.Name == "x-gzip" && name == "gzip" {
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
