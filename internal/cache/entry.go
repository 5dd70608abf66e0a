// Package cache holds answers that are ready to send: their bytes, the
// encodings of them, and the tags by which a caller knows them again. It knows
// nothing of what is in them.
package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"sync"

	"palmares/internal/problem"
)

// Entry is an answer that every caller of it gets alike.
type Entry struct {
	header http.Header // but for what depends on the encoding
	body   []byte
	tag    string // without its quotes

	encoded [numberOfCodings]struct {
		once sync.Once
		body []byte
	}
}

// NewEntry makes an answer out of its body and headers, neither of which may
// change from then on. The headers must say that it varies with
// Accept-Encoding, beside whatever else it varies with.
func NewEntry(body []byte, header http.Header) *Entry {
	sum := sha256.Sum256(body)
	return &Entry{header: header, body: body, tag: base64.RawURLEncoding.EncodeToString(sum[:15])}
}

// in is the body in an encoding, which is worked out once, on first need.
func (e *Entry) in(c coding) []byte {
	if c == identity {
		return e.body
	}
	encoded := &e.encoded[c]
	encoded.once.Do(func() { encoded.body = c.encode(e.body) })
	return encoded.body
}

// etag is strong: another encoding is another sequence of bytes.
func (e *Entry) etag(c coding) string {
	if c == identity {
		return `"` + e.tag + `"`
	}
	return `"` + e.tag + "-" + c.String() + `"`
}

// Write answers a GET or HEAD, with 304 if the caller has the answer already.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request) error {
	c, ok := negotiate(r.Header["Accept-Encoding"], len(e.body))
	if !ok {
		return problem.New(problem.NotAcceptable, "None of the encodings that Accept-Encoding allows is served: use identity, gzip, br or zstd.")
	}
	header := w.Header()
	for name, values := range e.header {
		header[name] = values
	}
	tag := e.etag(c)
	header.Set("ETag", tag)
	if matches(r.Header["If-None-Match"], tag) {
		header.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if c != identity {
		header.Set("Content-Encoding", c.String())
	}
	body := e.in(c)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // whoever went away needs no answer
	}
	return nil
}
