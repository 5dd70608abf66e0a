package journal

import (
	"embed"
	"net/http"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// SchemasPath is where the schemas of events are: <type>.json below it.
const SchemasPath = "/schemas/events/"

// SchemaHandler serves the JSON Schema of each type of event.
func SchemaHandler() http.Handler {
	schemas := map[string]*cache.Entry{}
	for _, event := range Events {
		name := event + ".json"
		text, err := schemaFiles.ReadFile("schemas/" + name)
		if err != nil {
			panic(err) // a type without a schema: a mistake in the program
		}
		schemas[name] = cache.NewEntry(text, http.Header{
			"Content-Type":           {"application/schema+json"},
			"Cache-Control":          {"s-maxage=3600, stale-while-revalidate=86400"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := strings.CutPrefix(r.URL.Path, SchemasPath)
		schema, known := schemas[name]
		var err error
		switch {
		case !known:
			err = problem.New(problem.NotFound, "There is no event of that type. Types: %s.", strings.Join(Events, ", "))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			err = problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
		default:
			err = schema.Write(w, r)
		}
		if err != nil {
			problem.Write(w, err)
		}
	})
}
