package graph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"palmares/internal/core/params"
)

// Body returns the response body of one of the server's own operations: the value of
// its only root field if that is named body, or else the whole result.
func (a *Result) Body() json.RawMessage {
	if value, ok := OnlyField(a.Data, "body"); ok {
		return value
	}
	return a.Data
}

// Decode decodes the data, or returns the first error.
func (a *Result) Decode(to any) error {
	if p := a.Problem(); p != nil {
		return p
	}
	return json.Unmarshal(a.Data, to)
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

// AsOfName is the name of AsOfParam, which selects the release that is read.
const AsOfName = "as_of"

// AsOfParam is a parameter of every interface but GraphQL, which has a directive.
var AsOfParam = params.Param{Name: AsOfName, Kind: "String"}

// ReadAsOf returns the release that the values of parameters select.
func ReadAsOf(values map[string]any) (asOf AsOf, err error) {
	if text, given := values[AsOfName].(string); given {
		return ParseAsOf(text)
	}
	return asOf, nil
}

// Directive returns the directive that selects the same release, after a space; ""
// for the newest.
func (a AsOf) Directive() string {
	switch {
	case a.Release > 0:
		return fmt.Sprintf(" @asOf(release: %d)", a.Release)
	case a.Date != "":
		return fmt.Sprintf(" @asOf(date: %q)", a.Date)
	}
	return ""
}

// AddTo adds the headers of a response to a request that selects its release. A release
// selected by number never changes; RFC 7089 calls it a memento. urlAsOf returns the
// URL of the request with a value of as_of, or without it for nil.
func (a AsOf) AddTo(header http.Header, result *Result, urlAsOf func(value any) string) {
	switch {
	case a.Date != "":
		header["Content-Location"] = []string{urlAsOf(strconv.Itoa(result.Release))}
	case a.Release > 0:
		header["Memento-Datetime"] = []string{result.PublishedAt.UTC().Format(http.TimeFormat)}
		header["Link"] = append(header["Link"], "<"+urlAsOf(nil)+`>; rel="original"`)
	}
}
