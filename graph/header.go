package graph

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Body returns the response body of one of the server's own operations: the value of
// its only root field if that is named body, or else the whole result.
func (a *Result) Body() json.RawMessage {
	if value, ok := OnlyField(a.Data, "body"); ok {
		return value
	}
	return a.Data
}

// Found reports whether the body is not null.
func (a *Result) Found() bool { return string(a.Body()) != "null" }

// OnlyField returns the value of the only field of an object that the executor wrote. It
// returns false if a condition excluded the field, or if its name differs.
func OnlyField(object json.RawMessage, name string) (value json.RawMessage, ok bool) {
	if value, ok = bytes.CutPrefix(object, []byte(`{"`+name+`":`)); ok {
		value = value[:len(value)-1]
	}
	return value, ok
}

// CacheControl is the Cache-Control header of responses from the newest release.
const CacheControl = "s-maxage=3600, stale-while-revalidate=86400"

// Header returns the headers that every interface sends with a result. A
// response from a release selected by number never changes; a response to a caller
// with a key is private.
func (a *Result) Header(contentType string, keyed bool) http.Header {
	caching := CacheControl
	switch {
	case len(a.Errors) > 0:
		caching = "no-store"
	case a.SchemaOnly: // a new version of the program may change it
	case a.Release == 0:
		caching = "no-store" // the first release may be published at any time
	case a.AsOf.Release > 0 && keyed:
		caching = "private, max-age=31536000, immutable"
	case a.AsOf.Release > 0:
		caching = "public, max-age=31536000, immutable"
	}
	header := http.Header{
		"Cache-Control":          {caching},
		"Content-Type":           {contentType},
		"X-Content-Type-Options": {"nosniff"},
	}
	if a.Release > 0 {
		header["X-Service-Updated-At"] = []string{a.UpdatedAt}
		header[ReleaseHeader] = []string{strconv.Itoa(a.Release)}
	}
	return header
}

// ReleaseHeader has the number of the release that a response is from.
const ReleaseHeader = "X-Service-Release"
