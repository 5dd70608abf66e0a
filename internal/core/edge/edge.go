// Package edge lets caches in front of the service, such as Varnish or a CDN, store
// responses until a release changes them: each public response names what it depends on,
// and each server purges what a release changed.
package edge

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	// KeysHeader has the surrogate keys of a response, separated by spaces.
	KeysHeader = "Surrogate-Key"
	// tagsHeader has the same keys for CDNs that use tags, separated by commas.
	tagsHeader = "Cache-Tag"
	// All is the key of every response.
	All = "all"
)

// Release is the key of responses that any other release may change. It has the number
// of the release that was served when they were rendered. Those of the next release have
// another key, so that they survive when their predecessors are purged a second time.
func Release(number int) string { return "release-" + strconv.Itoa(number) }

// Tool is the key of responses that depend only on a tool.
func Tool(slug string) string { return "tool-" + slug }

// Category is the key of responses that depend only on a category and its tools.
func Category(slug string) string { return "category-" + slug }

// IsSlug reports whether a text from a request can be part of a key.
func IsSlug(text string) bool {
	return text != "" && len(text) <= 80 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Header returns the value of KeysHeader for a response with these keys.
func Header(keys ...string) []string {
	return []string{strings.Join(append([]string{All}, keys...), " ")}
}

// Middleware adds keys to the public responses that have none: of the release that was
// served when the request arrived, because the response may be from that one. It removes
// those of private responses. With tags, it adds Cache-Tag.
func Middleware(served func() int, tags bool) func(http.Handler) http.Handler {
	var current atomic.Pointer[releaseKeys]
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			known, release := current.Load(), served()
			if known == nil || known.release != release {
				known = &releaseKeys{release, Header(Release(release))}
				current.Store(known)
			}
			next.ServeHTTP(&writer{ResponseWriter: w, keys: known.header, tags: tags}, r)
		})
	}
}

// releaseKeys are the keys of the responses of a release that have no others.
type releaseKeys struct {
	release int
	header  []string
}

var onlyAll = Header()

// writer sets the keys of a response just before its headers are sent.
type writer struct {
	http.ResponseWriter
	keys          []string
	tags, started bool
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if !w.started && status >= http.StatusOK {
		w.started = true
		w.setKeys()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	if !w.started {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) setKeys() {
	header := w.Header()
	caching := header.Get("Cache-Control")
	switch {
	case caching == "" || strings.Contains(caching, "no-store") || strings.Contains(caching, "private") || header["Cdn-Cache-Control"] != nil:
		delete(header, KeysHeader)
		return
	case strings.Contains(caching, "immutable"):
		header[KeysHeader] = onlyAll
	case header[KeysHeader] == nil:
		header[KeysHeader] = w.keys
	}
	if w.tags {
		header[tagsHeader] = []string{strings.ReplaceAll(header[KeysHeader][0], " ", ",")}
	}
}
