// Package headers translates the results of package graph, which knows nothing of HTTP, to
// the headers that REST, GraphQL and saved queries have in common.
package headers

import (
	"net/http"
	"strconv"

	"palmares/graph"
	"palmares/graph/document"
)

// CacheControl is the Cache-Control header of responses from the newest release.
const CacheControl = "s-maxage=3600, stale-while-revalidate=86400"

// Release is the header with the number of the release that a response is from.
const Release = "X-Service-Release"

// Of returns the headers that every interface sends with a result. A response from a
// release selected by number never changes; a response to a caller with a key is private.
func Of(result *graph.Result, contentType string, keyed bool) http.Header {
	caching := CacheControl
	switch {
	case len(result.Errors) > 0:
		caching = "no-store"
	case result.SchemaOnly: // a new version of the program may change it
	case result.Release == 0:
		caching = "no-store" // the first release may be published at any time
	case result.AsOf.Release > 0 && keyed:
		caching = "private, max-age=31536000, immutable"
	case result.AsOf.Release > 0:
		caching = "public, max-age=31536000, immutable"
	}
	header := http.Header{
		"Cache-Control":          {caching},
		"Content-Type":           {contentType},
		"X-Content-Type-Options": {"nosniff"},
	}
	if result.Release > 0 {
		header["X-Service-Updated-At"] = []string{result.UpdatedAt}
		header[Release] = []string{strconv.Itoa(result.Release)}
	}
	return header
}

// AddAsOf adds the headers of a response to a request that selects its release. A release
// selected by number never changes; RFC 7089 calls it a memento. urlAsOf returns the URL of
// the request with a value of as_of, or without it for nil.
func AddAsOf(header http.Header, asOf graph.AsOf, result *graph.Result, urlAsOf func(value any) string) {
	switch {
	case asOf.Date != "":
		header["Content-Location"] = []string{urlAsOf(strconv.Itoa(result.Release))}
	case asOf.Release > 0:
		header["Memento-Datetime"] = []string{result.PublishedAt.UTC().Format(http.TimeFormat)}
		header["Link"] = append(header["Link"], "<"+urlAsOf(nil)+`>; rel="original"`)
	}
}

// AddDeprecation adds the headers Deprecation (RFC 9745) and Sunset (RFC 8594) and a link to
// the changelog, unless d is nil.
func AddDeprecation(header http.Header, d *document.Deprecation) {
	if d == nil {
		return
	}
	header.Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	if !d.Sunset.IsZero() {
		header.Set("Sunset", d.Sunset.UTC().Format(http.TimeFormat))
	}
	header.Add("Link", `</changelog>; rel="deprecation"; type="text/html"`)
}
