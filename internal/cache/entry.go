// Package cache keeps answers that are ready to send: their bytes, the
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
	header []field // but for what depends on the encoding
	forms  [numberOfCodings]form
}

// field is a header, ready to be put into an answer's.
type field struct {
	name   string
	values []string
}

// form is the answer in one encoding: its bytes are worked out once, on first
// need, and its headers are made to be sent as they are.
type form struct {
	once           sync.Once
	body           []byte
	length, tag    []string
	contentCodings []string
}

// NewEntry makes an answer out of its body and headers, neither of which may
// change from then on. The headers must say that it varies with
// Accept-Encoding, beside whatever else it varies with.
func NewEntry(body []byte, header http.Header) *Entry {
	sum := sha256.Sum256(body)
	name := base64.RawURLEncoding.EncodeToString(sum[:15])
	e := &Entry{}
	for name, values := range header {
		e.header = append(e.header, field{name, values})
	}
	for c := range numberOfCodings {
		// A tag is strong: another encoding is another sequence of bytes.
		e.forms[c].tag = []string{`"` + name + "-" + c.String() + `"`}
		e.forms[c].contentCodings = []string{c.String()}
	}
	plain := &e.forms[identity]
	plain.tag, plain.body, plain.length = []string{`"` + name + `"`}, body, []string{strconv.Itoa(len(body))}
	return e
}

// in is the answer in an encoding, worked out.
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

// weight is what an answer takes in memory, with the encodings that it may
// come to have.
func (e *Entry) weight() int { return 2*len(e.forms[identity].body) + 2_000 }

// Write answers a request, a GET or HEAD with 304 if the caller has the answer
// already.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request) error {
	c, ok := negotiate(r.Header["Accept-Encoding"], len(e.forms[identity].body))
	if !ok {
		return problem.New(problem.NotAcceptable, "None of the encodings that Accept-Encoding allows is served: use identity, gzip, br or zstd.")
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
		_, _ = w.Write(f.body) // whoever went away needs no answer
	}
	return nil
}
