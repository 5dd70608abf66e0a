package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/middleware"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/problem"
	"palmares/internal/transport/headers"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	"palmares/internal/web/page"
	"palmares/internal/web/queries"
	"palmares/internal/web/status"
	"palmares/rest"
)

// catalogPath is the well-known path of the API catalog (RFC 9727).
const catalogPath = "/.well-known/api-catalog"

// api is an API and its documentation.
type api struct {
	root         string   // base path
	descriptions []target // machine-readable
	manual       string   // path of the page for people
}

type target struct {
	Href string `json:"href"`
	Type string `json:"type,omitempty"`
}

// apis returns all APIs, with paths instead of URLs.
func apis() []api {
	events := api{root: journal.SchemasPath, manual: "/guides/webhooks"}
	for _, event := range journal.SchemaTypes {
		events.descriptions = append(events.descriptions, target{journal.SchemasPath + event + ".json", "application/schema+json"})
	}
	return []api{
		{"/api/v1", []target{{rest.DocumentPath, "application/json"}, {rest.YAMLPath, "application/yaml"}}, apidocs.ReferencePath},
		{"/graphql", []target{{apidocs.SchemaPath, "text/plain"}}, apidocs.ExplorerPath},
		{saved.Path + saved.Handle, []target{{saved.Path + saved.Handle + "/openapi.json", "application/json"}}, queries.GalleryPath},
		{mcp.Path, []target{{"/guides/agents.md", "text/markdown"}, {mcp.RegistryPath, "application/json"}}, "/guides/agents"},
		events,
	}
}

// newAPICatalog returns a handler for catalogPath.
func newAPICatalog(base string) (http.Handler, error) {
	absolute := func(path, mediaType string) []target { return []target{{base + path, mediaType}} }
	type link map[string]any
	var items []target
	contexts := []link{nil} // the first describes the catalog itself
	for _, a := range apis() {
		items = append(items, target{Href: base + a.root})
		descriptions := make([]target, len(a.descriptions))
		for i, d := range a.descriptions {
			descriptions[i] = target{base + d.Href, d.Type}
		}
		contexts = append(contexts, link{
			"anchor": base + a.root, "service-desc": descriptions,
			"service-doc": absolute(a.manual, "text/html"), "status": absolute(status.Path, "text/html"),
		})
	}
	contexts[0] = link{"anchor": base + catalogPath, "item": items}
	body, err := json.Marshal(map[string]any{"linkset": contexts})
	if err != nil {
		return nil, err
	}
	entry := cache.NewEntry(body, http.Header{
		"Content-Type":           {`application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`},
		"Cache-Control":          {headers.CacheControl},
		"Link":                   {"<" + base + catalogPath + `>; rel="api-catalog"`},
		"Vary":                   {"Accept-Encoding"},
		"X-Content-Type-Options": {"nosniff"},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := page.CheckMethod(w, r)
		if err == nil {
			err = entry.Write(w, r)
		}
		if err != nil {
			problem.Write(w, err)
		}
	}), nil
}

// linkDescriptions adds links to an API's documentation to the responses at its root.
// The root of the REST API has no content, so the home page has its links too.
func linkDescriptions(base string) middleware.Middleware {
	links := map[string]string{}
	for _, a := range apis() {
		var all []string
		link := func(path, rel, mediaType string) {
			all = append(all, "<"+base+path+`>; rel="`+rel+`"; type="`+mediaType+`"`)
		}
		for _, d := range a.descriptions {
			link(d.Href, "service-desc", d.Type)
		}
		link(a.manual, "service-doc", "text/html")
		link(status.Path, "status", "text/html")
		links[a.root] = strings.Join(all, ", ")
	}
	links["/"] = links["/api/v1"] + ", <" + base + catalogPath + `>; rel="api-catalog"`
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Link"] = []string{links[r.URL.Path]}
			next.ServeHTTP(w, r)
		})
	}
}

// lacksOperation reports whether a GraphQL path was opened in a browser without an
// operation: neither a query nor the hash of a persisted one.
func lacksOperation(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	params := r.URL.Query()
	return !params.Has("query") && !params.Has("extensions") &&
		negotiate.Accepts(r.Header["Accept"], "application/json", "application/graphql-response+json", "text/event-stream", "text/html") == "text/html"
}

// showExplorer redirects to the explorer.
func showExplorer(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept, Accept-Language")
		http.Redirect(w, r, lang.Preferred(r.Header.Get("Accept-Language")).Path(apidocs.ExplorerPath), http.StatusSeeOther)
	})
}
