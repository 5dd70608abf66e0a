package graph

import (
	"net/http"
	"strconv"
)

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
