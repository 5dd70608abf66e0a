package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
	"palmares/internal/web/prose"
)

// follow requests a path, and the page in a language that it redirects to.
func follow(s *servertest.Server, path string) *httptest.ResponseRecorder {
	got := s.Get(path)
	if to := got.Header().Get("Location"); to != "" {
		got = s.Get(to)
	}
	return got
}

// Every link of the API catalog, and of the roots' headers, leads somewhere.
func TestAPICatalog(t *testing.T) {
	s := servertest.New(t)
	const base = servertest.URL
	got := s.Get("/.well-known/api-catalog")
	if contentType := got.Header().Get("Content-Type"); got.Code != 200 || contentType != `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"` ||
		got.Header().Get("Access-Control-Allow-Origin") != "*" || got.Header().Get("Link") != "<"+base+`/.well-known/api-catalog>; rel="api-catalog"` {
		t.Fatalf("got %d %v, want a linkset that everyone may read", got.Code, got.Header())
	}
	type link struct{ Href, Type string }
	var catalog struct {
		Linkset []struct {
			Anchor      string
			Item        []link
			ServiceDesc []link `json:"service-desc"`
			ServiceDoc  []link `json:"service-doc"`
			Status      []link
		}
	}
	if err := json.Unmarshal(got.Body.Bytes(), &catalog); err != nil || len(catalog.Linkset) != 6 {
		t.Fatalf("got %+v and %v, want the catalog and five interfaces", catalog, err)
	}
	for i, context := range catalog.Linkset {
		if i == 0 {
			check.Equal(t, context.Anchor, base+"/.well-known/api-catalog", "%+v", context)
			check.Equal(t, len(context.Item), 5, "%+v", context)
			continue
		}
		if catalog.Linkset[0].Item[i-1].Href != context.Anchor || len(context.ServiceDesc) == 0 || len(context.ServiceDoc) == 0 || len(context.Status) == 0 {
			t.Errorf("got %+v, want an item of the catalog with descriptions, documentation and status", context)
		}
		for _, links := range [][]link{context.ServiceDesc, context.ServiceDoc, context.Status} {
			for _, l := range links {
				found := follow(s, strings.TrimPrefix(l.Href, base))
				if contentType, _, _ := strings.Cut(found.Header().Get("Content-Type"), ";"); found.Code != 200 || contentType != l.Type {
					t.Errorf("%s: got %d %s, want 200 %s", l.Href, found.Code, contentType, l.Type)
				}
			}
		}
	}
	for path, description := range map[string]string{"/": "/api/v1/openapi.json", "/api/v1": "/api/v1/openapi.json", "/graphql?query={__typename}": "/explorer/schema.graphql"} {
		links := strings.Join(follow(s, path).Header()["Link"], ", ")
		for _, want := range []string{"<" + base + description + `>; rel="service-desc"`, `; rel="service-doc"`, "<" + base + `/status>; rel="status"`} {
			check.Contains(t, links, want, "%s: Link", path)
		}
	}
	if got := s.Get("/.well-known/mcp/server.json"); got.Code != 200 || got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("server.json: got %d %v, want 200", got.Code, got.Header())
	}
	if got := s.Do(http.MethodPost, "/.well-known/api-catalog", ""); got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d %v, want 405", got.Code, got.Header())
	}
}

// Files that browsers, feed readers and other sites look for exist.
func TestFilesForBrowsers(t *testing.T) {
	s := servertest.New(t)
	for path, mediaType := range map[string]string{
		"/favicon.ico": "image/x-icon", "/apple-touch-icon.png": "image/png", "/icon-192.png": "image/png", "/icon-512.png": "image/png",
		"/manifest.webmanifest": "application/manifest+json", "/og.png": "image/png", "/feeds/status.atom": "application/atom+xml; charset=utf-8",
	} {
		if got := s.Get(path); got.Code != 200 || got.Header().Get("Content-Type") != mediaType {
			t.Errorf("%s: got %d %s, want 200 %s", path, got.Code, got.Header().Get("Content-Type"), mediaType)
		}
	}
}

// A browser at /graphql gets the explorer, which does not count against the quota.
// API clients get what they requested.
func TestGraphQLInBrowser(t *testing.T) {
	s := servertest.New(t)
	const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	const hash = "?extensions=%7B%22persistedQuery%22%3A%7B%22version%22%3A1%2C%22sha256Hash%22%3A%22ab%22%7D%7D"
	for range 120 { // the quota without a key is 100
		got := s.Get("/graphql", "Accept", chrome)
		if got.Code != 303 || got.Header().Get("Location") != "/en/explorer" || !strings.Contains(got.Header().Get("Vary"), "Accept") {
			t.Fatalf("got %d %v, want 303 to the explorer", got.Code, got.Header())
		}
	}
	for _, c := range []struct {
		method, path, accept string
		status               int
	}{
		{"HEAD", "/graphql", "text/html", 303},
		{"GET", "/graphql?utm_source=x", chrome, 303},
		{"GET", "/graphql?query={__typename}", chrome, 200},
		{"GET", "/graphql?query=", chrome, 400},
		{"GET", "/graphql" + hash, chrome, 400},
		{"GET", "/graphql", "", 400},
		{"GET", "/graphql", "*/*", 400},
		{"GET", "/graphql", "application/json", 400},
		{"GET", "/graphql", "application/json, text/html", 400},
		{"GET", "/graphql", "application/graphql-response+json, text/html;q=0.9", 400},
		{"GET", "/graphql", "text/event-stream, text/html;q=0.9", 400},
		{"POST", "/graphql", "text/html", 406},
	} {
		var headers []string
		if c.accept != "" {
			headers = []string{"Accept", c.accept}
		}
		check.Equal(t, s.Do(c.method, c.path, "", headers...).Code, c.status, "%s %s with Accept %q", c.method, c.path, c.accept)
	}
	check.Equal(t, s.Get("/en/explorer", "Accept", chrome).Code, 200, "explorer")
}

// Every error links to a page that explains it, and that page exists.
func TestErrorsLinkHelp(t *testing.T) {
	s := servertest.New(t)
	pages := map[string]bool{}
	verify := func(what string, got *httptest.ResponseRecorder, status int, page string) {
		t.Helper()
		links := strings.Join(got.Header()["Link"], ", ")
		if got.Code != status || strings.Count(links, `rel="help"`) != 1 || !strings.Contains(links, "<"+page+`>; rel="help"`) {
			t.Errorf("%s: got %d with Link %s, want %d with help at %s", what, got.Code, links, status, page)
		}
		if vary := got.Header().Get("Vary"); (status == 401 || status == 429) && !strings.Contains(vary, "Authorization") {
			t.Errorf("%s: got Vary %q, want Authorization", what, vary)
		}
		pages[page] = true
	}
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		page         string
	}{
		{"GET", "/api/v1/tools?page=0", nil, 400, "/docs"},
		{"GET", "/api/v1/tools?format=csv&page=1", nil, 400, "/docs"},
		{"GET", "/api/v1/tools/%ff", nil, 400, "/docs"},
		{"GET", "/graphql", nil, 400, "/docs"},
		{"GET", "/graphql?query={x}", []string{"Accept", "application/graphql-response+json"}, 400, "/docs"},
		{"GET", "/api/v1/tools?format=csv", nil, 401, "/guides/quotas"},
		{"GET", "/api/embeddings/plume", nil, 401, "/guides/quotas"},
		{"GET", "/api/v1/tools", []string{"Authorization", "Bearer nonsense"}, 401, "/guides/quotas"},
		{"GET", "/graphql?query={stats{toolsTotal}}", []string{"Authorization", "Basic x"}, 401, "/guides/quotas"},
		{"GET", "/api/v1", nil, 404, "/docs"},
		{"GET", "/api/v1/tools/nobody", nil, 404, "/docs"},
		{"GET", "/api/v1/tools?as_of=99", nil, 404, "/docs"},
		{"GET", "/q/nothing", nil, 404, "/docs"},
		{"GET", "/schemas/events/nothing.json", nil, 404, "/docs"},
		{"GET", "/schemas/feed/nothing.json", nil, 404, "/docs"},
		{"DELETE", "/api/v1/tools", nil, 405, "/docs"},
		{"DELETE", "/graphql", nil, 405, "/docs"},
		{"GET", "/api/v1/tools", []string{"Accept-Encoding", "identity;q=0"}, 406, "/docs"},
		{"POST", "/graphql", []string{"Content-Type", "text/plain"}, 415, "/docs"},
	} {
		verify(c.method+" "+c.path, s.Do(c.method, c.path, "", c.headers...), c.status, c.page)
	}
	for range 100 {
		s.Get("/api/v1/stats")
	}
	for _, path := range []string{"/api/v1/stats", "/graphql?query={stats{toolsTotal}}"} {
		verify(path+" without quota", s.Get(path), 429, "/guides/quotas")
	}
	for page := range pages {
		check.Equal(t, follow(s, page).Code, 200, "%s: want the page", page)
	}
}

// Researchers find where to report vulnerabilities, if the publisher says so.
func TestSecurityFile(t *testing.T) {
	t.Parallel()
	check.Equal(t, servertest.New(t).Get(prose.SecurityPath).Code, http.StatusNotFound, "without facts: status")
	s := servertest.New(t, func(c *server.Config) {
		c.Facts = prose.Facts{SecurityContact: "ana+x@example.com", SecurityExpires: "2027-06-30"}
	})
	const want = "Contact: mailto:ana+x@example.com\nExpires: 2027-06-30T00:00:00Z\nPreferred-Languages: en, fr\n" +
		"Canonical: https://palmares.example/.well-known/security.txt\nPolicy: https://palmares.example/en/contact\n"
	w := s.Get(prose.SecurityPath)
	if got := w.Body.String(); got != want || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got %s of type %s, want %s", got, w.Header().Get("Content-Type"), want)
	}
	if w := servertest.New(t, func(c *server.Config) { c.Demo = true }).Get(prose.SecurityPath); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Contact: mailto:security@demo.example\n") {
		t.Errorf("demo: got status %d and %s, want a contact", w.Code, w.Body)
	}
}
