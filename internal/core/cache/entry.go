// Package cache holds what a server keeps in memory: responses ready to send,
// with their encodings and tags, and what is needed to make them. It knows
// nothing of their content.
package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"net/http"
	"strconv"
	"sync"

	"palmares/internal/core/problem"
)

// Entry is a response that is the same for all its callers.
type Entry struct {
	header []field // except for what depends on the encoding
	forms  [numberOfCodings]form
	held   int // bytes that its Make holds on to
}

// field is a header, ready to be put into a response's.
type field struct {
	name   string
	values []string
}

// form is the response in one encoding: its bytes are encoded once, on first
// use, and its headers are ready to be sent.
type form struct {
	once           sync.Once
	body           []byte
	length, tag    []string
	contentCodings []string
}

// NewEntry makes an entry of a body and headers, neither of which may change
// from then on. The headers must say that it varies with Accept-Encoding,
// beside whatever else it varies with. Its tags are hashes of the body, until
// a cache signs them: that is right for files that are public anyway.
func NewEntry(body []byte, header http.Header) *Entry {
	e := &Entry{}
	for name, values := range header {
		e.header = append(e.header, field{name, values})
	}
	for c := range numberOfCodings {
		e.forms[c].contentCodings = []string{c.String()}
	}
	plain := &e.forms[identity]
	plain.body, plain.length = body, []string{strconv.Itoa(len(body))}
	e.setTags(sha256.New(), Question{})
	return e
}

// Holding adds bytes that the entry's Make holds on to, to its weight.
func (e *Entry) Holding(bytes int) *Entry {
	e.held = bytes
	return e
}

// sign replaces the tags by keyed ones. They depend on the body, the question
// and the encoding alone, so every server and restart gives the same; without
// the secret, nobody can compute the tag of a body that they have not received.
// Otherwise a list of the tags of all plausible bodies in If-None-Match would
// turn a free 304 into a response.
func (e *Entry) sign(secret []byte, q Question) { e.setTags(hmac.New(sha256.New, secret), q) }

// tagBytes is how much of a hash makes a tag: 120 bits.
const tagBytes = 15

func (e *Entry) setTags(hash hash.Hash, q Question) {
	body := sha256.Sum256(e.forms[identity].body)
	for c := range numberOfCodings {
		hash.Reset()
		for _, part := range []string{string(body[:]), q.Operation, q.Variables, c.String()} {
			// Lengths keep parts apart that would read the same when joined.
			_ = binary.Write(hash, binary.BigEndian, uint64(len(part)))
			hash.Write([]byte(part))
		}
		// A strong tag: another encoding is another sequence of bytes.
		e.forms[c].tag = []string{`"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:tagBytes]) + `"`}
	}
}

// in is the response in an encoding.
func (e *Entry) in(c coding) *form {
	f := &e.forms[c]
	if c != identity {
		f.once.Do(func() {
			f.body = c.encode(e.forms[identity].body)
			f.length = []string{strconv.Itoa(len(f.body))}
		})
	}
	return f
}

// weight is what a response takes in memory, including the encodings that it
// may come to have.
func (e *Entry) weight() int { return 2*len(e.forms[identity].body) + 2_000 + e.held }

// Write sends a response, which is 304 for a GET or HEAD whose caller has it
// already.
func (r Response) Write(w http.ResponseWriter, req *http.Request) error {
	if r.executed {
		reportExecution(w)
	}
	return r.Entry.Write(w, req)
}

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
		return problem.New(problem.NotAcceptable, "Accept-Encoding allows none of the encodings that are available: identity, gzip, br and zstd.")
	}
	header := w.Header()
	for _, f := range e.header {
		header[f.name] = f.values
	}
	if r.Method != http.MethodPost {
		header["Etag"] = e.forms[c].tag
		if tags := r.Header["If-None-Match"]; tags != nil && matches(tags, e.forms[c].tag[0]) {
			delete(header, "Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	f := e.in(c)
	if c != identity {
		header["Content-Encoding"] = f.contentCodings
	}
	header["Content-Length"] = f.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.body) // a caller that has left needs no response
	}
	return nil
}
