// Package jsonschema publishes JSON Schemas: those of a feed, and for package journal those
// of events.
package jsonschema

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// FeedPath is where the JSON Schemas of a feed are served, as <type>.json.
const FeedPath = "/schemas/feed/"

// Feed returns the JSON Schema of a type of lines in a feed as a document.
func Feed(recordType string) []byte {
	return Document(FeedPath, recordType, record.FeedSchema(recordType))
}

// FeedHandler serves the JSON Schemas of a feed.
func FeedHandler() http.Handler {
	return Handler(FeedPath, record.FeedTypes, Feed, "There is no schema with this name. Schemas")
}

// Titled adds the metadata that make a schema a document of its own.
func Titled(path, name string, schema record.Schema) record.Schema {
	schema["$schema"], schema["$id"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", path+name+".json", name
	return schema
}

// Document encodes a schema as a document that is served below a path.
func Document(path, name string, schema record.Schema) []byte {
	text, err := json.Marshal(Titled(path, name, schema), json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // the schemas are the program's own
	}
	return append(text, '\n')
}

// Handler serves documents below a path. The error for an unknown name is a sentence,
// followed by the known names.
func Handler(path string, names []string, document func(name string) []byte, unknown string) http.Handler {
	documents := map[string]*cache.Entry{}
	for _, name := range names {
		documents[path+name+".json"] = cache.NewEntry(document(name), http.Header{
			"Content-Type":           {"application/schema+json"},
			"Cache-Control":          {"s-maxage=3600, stale-while-revalidate=86400"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, known := documents[r.URL.Path]
		var err error
		switch {
		case !known:
			err = problem.New(problem.NotFound, "%s: %s.", unknown, strings.Join(names, ", "))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			err = problem.New(problem.WrongMethod, "The method %s is not allowed here. Use GET.", r.Method)
		default:
			err = document.Write(w, r)
		}
		if err != nil {
			problem.Write(w, err)
		}
	})
}
