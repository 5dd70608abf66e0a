// Package cache holds responses in memory, ready to send with their encodings and
// ETags, and other values that are expensive to compute. It does not depend on their
// content.
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
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"palmares/internal/core/negotiate"
)

// Entry is a response that can be sent to several callers.
type Entry struct {
	// Value is what the code that made the entry wants to know when it sends it; nil for none.
	Value any

	header      http.Header // without the headers that depend on the encoding
	forms       [numberOfCodings]form
	extraWeight int // see AddWeight
	uses        atomic.Int64

	secret []byte // signs the ETags; nil for public files
	query  Key
}

// form is the response in one encoding. Its body and its ETag are computed once, on
// first use.
type form struct {
	encoding, tagging sync.Once
	body              []byte
	length, tag       []string
}

// NewEntry returns an entry with a body and headers, which must not be modified
// afterwards. Vary must include Accept-Encoding. Until a cache signs them, ETags are
// plain hashes of the body, which is fine for public files.
func NewEntry(body []byte, header http.Header) *Entry {
	e := &Entry{header: header}
	plain := &e.forms[identity]
	plain.body, plain.length = body, []string{strconv.Itoa(len(body))}
	return e
}

// With adds a header before the entry is used.
func (e *Entry) With(name string, value []string) *Entry {
	e.header[name] = value
	return e
}

// AddWeight adds to the entry's weight the bytes that its Execute references.
func (e *Entry) AddWeight(bytes int) *Entry {
	e.extraWeight = bytes
	return e
}

// sign makes the ETags keyed hashes. They depend only on the body, the query and the
// encoding, so all servers compute the same ones. Without the secret, a client cannot
// compute the ETag of a body that it has not received. Otherwise it could send the
// ETags of all plausible bodies in If-None-Match and learn the response from a 304,
// which does not count against the quota.
func (e *Entry) sign(secret []byte, q Key) { e.secret, e.query = secret, q }

// tagBytes is how many bytes of the hash an ETag has: 120 bits.
const tagBytes = 15

// etag returns the ETag of an encoding. Each encoding has its own, because strong
// ETags identify a sequence of bytes.
func (e *Entry) etag(c coding) []string {
	f := &e.forms[c]
	f.tagging.Do(func() {
		hash := hmac.New(sha256.New, e.secret)
		body := sha256.Sum256(e.forms[identity].body)
		input := make([]byte, 0, 256)
		for _, part := range [...]string{string(body[:]), e.query.Operation, e.query.Variables, c.String()} {
			// Without the lengths, different parts could be the same when joined.
			input = append(binary.BigEndian.AppendUint64(input, uint64(len(part))), part...)
		}
		hash.Write(input)
		f.tag = []string{`"` + base64.RawURLEncoding.EncodeToString(hash.Sum(input[:0])[:tagBytes]) + `"`}
	})
	return f.tag
}

// encoded returns the response in an encoding.
func (e *Entry) encoded(c coding) *form {
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

// weight returns how much memory a response takes, including the encodings that may
// be added later.
func (e *Entry) weight() int { return 2*len(e.forms[identity].body) + 2_000 + e.extraWeight }

// Write sends a response. It sends a 304 if If-None-Match has its ETag, except for
// POST requests.
func (r Response) Write(w http.ResponseWriter, req *http.Request) error {
	w.Header()["Cache-Status"] = r.cacheStatus()
	reporter, counts := Unwrap[ExecutionReporter](w)
	if r.executed && counts {
		reporter.ReportExecution()
	}
	// Only requests that count against a quota decide what is renewed for the next
	// release.
	if counts && req.Header["If-None-Match"] == nil {
		r.uses.Add(1)
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

// ExecutionReporter is the ResponseWriter of a request that is counted. It is notified
// if the response was executed for the request and did not come from the cache.
type ExecutionReporter interface{ ReportExecution() }

// ReportExecution notifies the ExecutionReporter among the writers around w, if any.
func ReportExecution(w http.ResponseWriter) {
	if reporter, found := Unwrap[ExecutionReporter](w); found {
		reporter.ReportExecution()
	}
}

// Unwrap returns the first of the writers around w that has a type.
func Unwrap[T any](w http.ResponseWriter) (found T, ok bool) {
	for {
		if found, ok = w.(T); ok {
			return found, true
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = wrapper.Unwrap()
	}
}

// Write sends an entry like Response.Write, without Cache-Status.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request) error {
	c, ok := e.negotiate(r.Header["Accept-Encoding"])
	if !ok {
		return errNotAcceptable
	}
	header := w.Header()
	maps.Copy(header, e.header)
	if r.Method == http.MethodPost {
		delete(header, "Cache-Control") // caches do not store it
	} else {
		tag := e.etag(c)
		header["Etag"] = tag
		if tags := r.Header["If-None-Match"]; tags != nil && matches(tags, tag[0]) {
			delete(header, "Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	f := e.encoded(c)
	if c != identity {
		header["Content-Encoding"] = codingHeaders[c]
	}
	header["Content-Length"] = f.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.body) // fails if the caller has disconnected
	}
	return nil
}

// maxTags limits how many ETags of If-None-Match are compared. Clients send one or a
// few.
const maxTags = 16

// AnyTag reports whether If-None-Match is "*", which matches every response.
func AnyTag(headers []string) bool {
	return slices.ContainsFunc(headers, func(header string) bool { return strings.TrimSpace(header) == "*" })
}

// matches reports whether If-None-Match contains a tag or "*". The comparison is
// weak, as the header requires: some proxies make ETags weak.
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
				break // not a list of ETags
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

// minCompressed is the size above which bodies are compressed. Smaller ones fit into
// one packet anyway.
const minCompressed = 1000

// An entry is encoded once and sent often, but the first caller waits for the
// encoding. These levels take well under a millisecond for a page of 50 tools.
const (
	gzipLevel   = 6
	brotliLevel = 5
)

// bodyWindow is the base 2 logarithm of how many bytes the encoder of a body looks back,
// 4 MiB.
const bodyWindow = 22

// zstdWriter only encodes whole bodies, which is safe for concurrent use.
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
	w := c.writer(&out, bodyWindow)
	_, _ = w.Write(body) // writing to a buffer never fails
	_ = w.Close()
	return out.Bytes()
}

// negotiate selects the coding that a caller prefers. Among equally preferred ones it
// selects the smallest: brotli, or else gzip or zstd, depending on the body. It
// returns false if the caller accepts no coding, not even identity.
func (e *Entry) negotiate(headers []string) (coding, bool) {
	wanted := qualities(headers)
	best, found := identity, wanted[identity] > 0
	for _, c := range [...]coding{brotlied, gzipped, zstandard} {
		switch {
		case wanted[c] <= 0:
		case !found:
			best, found = c, true
		case len(e.forms[identity].body) <= minCompressed || wanted[c] < wanted[best]:
		case wanted[c] > wanted[best] || best == identity || best == gzipped && len(e.encoded(c).body) < len(e.encoded(best).body):
			best = c
		}
	}
	return best, found
}

// qualities parses Accept-Encoding and returns the quality of each coding, from 0 to
// 1.
func qualities(headers []string) (wanted [numberOfCodings]float64) {
	wanted[identity] = lowestQuality // unless the header mentions it
	var named [numberOfCodings]bool
	for item := range negotiate.Items(headers) {
		// A malformed quality counts as 1: the client can decode the coding.
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

// lowestQuality is the quality of an acceptable coding that the header does not name.
const lowestQuality = 0.0001
