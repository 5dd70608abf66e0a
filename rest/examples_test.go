package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

// catalogOf returns a catalog that shares no slug with the demo. Its best tool
// has neither embeddings nor a price history.
func catalogOf(name string) []byte {
	rated := func(what string, score float64, change func(*record.Tool)) *record.Tool {
		return feedtest.Tool(name+"-"+what, func(t *record.Tool) {
			t.Score = &score
			change(t)
		})
	}
	compared := func(what, date string, published bool) *record.Comparison {
		return &record.Comparison{
			Slug: name + "-" + what, Title: "L'un ou l'autre ?", ToolA: name + "-best", ToolB: name + "-priced", Winner: name + "-best", WinnerNote: "Le meilleur.",
			Published: record.Published(published), UpdatedAt: date, CanonicalURL: "https://palmares.example/" + what,
		}
	}
	return feedtest.Catalog("2026-11-10",
		rated("best", 7.9, func(*record.Tool) {}),
		rated("priced", 7.8, func(t *record.Tool) {
			t.PriceHistory = []record.PriceChange{{ChangedAt: "2026-10-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "10 €/mois"}}
		}),
		rated("embedded", 7.7, func(t *record.Tool) { t.Tier = 1 }),
		compared("older", "2026-10-01", true), compared("newer", "2026-10-02", true), compared("hidden", "2026-10-03", false),
	)
}

// publish imports a catalog and moves the cache to the new release.
func publishFeed(t *testing.T, s *store.Store, responses *cache.Cache, catalog []byte) {
	t.Helper()
	report, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(catalog)), publish.Options{Force: true})
	if err == nil {
		err = responses.Renew(report.Release)
	}
	check.OK(t, err)
}

// The document's examples exist in the current catalog: for each path, the best
// tool that has the data it returns.
func TestExamplesComeFromCatalog(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		var tags []string
		for _, name := range []string{"first", "second"} {
			publishFeed(t, s, responses, catalogOf(name))
			got := get(handler, "/api/v1/openapi.json")
			tags = append(tags, got.Header().Get("ETag"))
			examples := map[string]string{}
			for _, path := range documentedPaths(t, got.Body.Bytes()) {
				examples[path.operation] = path.example
				response := get(handler, path.example)
				check.Equal(t, response.Code, 200, "%s: %s", path.example, response.Body)
			}
			for id, want := range map[string]string{
				"tool": "/api/v1/tools/" + name + "-best", "price": "/api/v1/pricing/" + name + "-priced",
				"embeddings": "/api/embeddings/" + name + "-embedded", "comparatif": "/api/v1/comparatifs/" + name + "-newer",
			} {
				check.Equal(t, examples[id], want, "%s: example", id)
				check.Contains(t, got.Body.String(), rest.ExplorerPath(want), "%s: another link to the explorer", id)
			}
			n, want := strings.Count(got.Body.String(), fmt.Sprintf(`"slug": "%s-`, name)), 0
			for path := range load(t, got.Body.Bytes()).Paths.Map() {
				want += strings.Count(path, "{slug}")
			}
			check.Equal(t, n, want, "operations with a slug from the catalog")
		}
		check.True(t, tags[0] != tags[1], "got the same ETag %s for two documents, want different ones", tags[0])
	})
}

// Before the first import, and while the database is unavailable, the examples
// are from the demo catalog, and the document is not cached.
func TestExamplesWithoutCatalog(t *testing.T) {
	verify := func(t *testing.T, handler http.Handler) {
		t.Helper()
		got := get(handler, "/api/v1/openapi.json")
		check.Equal(t, got.Code, 200, got.Header())
		check.Equal(t, got.Body.String(), string(document(t)), got.Header())
		check.Equal(t, got.Header().Get("Cache-Control"), "no-store", got.Header())
	}
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		verify(t, handler)
		publishFeed(t, s, responses, catalogOf("first"))
		if got := get(handler, "/api/v1/openapi.json"); !strings.Contains(got.Body.String(), "first-best") || got.Header().Get("Cache-Control") == "no-store" {
			t.Errorf("after the import: got headers %v and %s, want a cacheable document with first-best", got.Header(), got.Body)
		}
	})
	handler, _ := handlerOver(t, unreadable{})
	verify(t, handler)
	check.Try(handler.Samples(t.Context())).Fails(t, "Samples")
}

// unreadable is a catalog whose database is unavailable.
type unreadable struct{ release.Database }

func (unreadable) CurrentRelease(context.Context) (*ent.Release, error) {
	return nil, errors.New("unavailable")
}

// While releases are published, the examples of each document come from a single
// release.
func TestExamplesUseOneRelease(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		publishFeed(t, s, responses, catalogOf("even"))
		var readers sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					body := get(handler, "/api/v1/openapi.json").Body.String()
					even, odd := strings.Contains(body, "even-"), strings.Contains(body, "odd-")
					if even == odd {
						t.Errorf("got examples of even: %t, of odd: %t, want exactly one", even, odd)
						return
					}
				}
			})
		}
		for i := range 6 {
			publishFeed(t, s, responses, catalogOf([]string{"odd", "even"}[i%2]))
		}
		close(done)
		readers.Wait()
		check.Contains(t, get(handler, "/api/v1/openapi.json").Body.String(), "even-best", "document without even-best")
	})
}

func TestExplain(t *testing.T) {
	handler, _ := handlerOver(t, nil)
	for target, want := range map[string]string{
		"/api/v1/tools?category=code&score_min=7.5&whatever=1": `tools {"category":["code"],"limit":50,"page":1,"score_min":7.5,"sort":"score_desc"}`,
		"/api/v1/tools?icp=vibe-coder&pricing=payant":          `tools {"icp":["vibe_coder"],"limit":50,"page":1,"pricing":["payant"],"sort":"score_desc"}`,
		"/api/v1/cimetiere?reason=mort&page=2":                 `retired {"limit":50,"page":2,"reason":"mort"}`,
		"/api/v1/tools/a%2Fb":                                  `tool {"slug":"a/b"}`,
		"https://elsewhere.example/api/v1/stats":               `stats {}`,
		"/api/embeddings/plume":                                `embeddings {"slug":"plume"}`,
		"/api/v1/tools/plume?as_of=5":                          `tool {"slug":"plume"}`,
		"/api/v1/tools?limit=2&as_of=2026-07-30":               `tools {"limit":2,"page":1,"sort":"score_desc"}`,
		"/api/v1/stats?as_of=1":                                `stats {}`,
		"/api/v1/changes?types=price.changed&after=evt_1":      `changes {"after":"evt_1","limit":50,"types":["price_changed"]}`,
	} {
		for range 2 { // the second one from the cache
			query, variables, err := handler.Explain(target)
			if err != nil {
				t.Errorf("%s: got %v, want no error", target, err)
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(query, "query "), " ")
			check.Try(graph.NewOperation(query)).OK(t, target)
			check.Equal(t, strings.Contains(query, "@asOf"), strings.Contains(target, "as_of"), "%s: %s", target, query)
			encoded, _ := json.Marshal(variables)
			check.Equal(t, name+" "+string(encoded), want, target)
		}
	}
}

func TestExplainErrors(t *testing.T) {
	handler, _ := handlerOver(t, nil)
	for target, want := range map[string]string{
		"":                          "There is no such path",
		"/api/v1/nothing":           "There is no such path",
		"/api/v1/tools?limit=1000":  "limit",
		"/api/v1/tools?sort=worst":  "one of score_desc",
		"/api/v1/tools/%00":         "NUL",
		"/api/v1/tools/%zz":         "not a valid path",
		"/api/v1/openapi.json":      "no GraphQL operation",
		"javascript:alert(1)":       "There is no such path",
		"/api/v1/tools\x7f?limit=1": "not a valid path",
	} {
		_, _, err := handler.Explain(target)
		p := problem.Of(err)
		check.Fails(t, err, target)
		check.True(t, p.Code.Status() < 500, "%q: got %v, want %q", target, err, want)
		check.Contains(t, p.Message, want, target)
	}
}

func TestOperations(t *testing.T) {
	handler, _ := handlerOver(t, nil)
	operations := handler.Operations()
	open, keyed := rest.Paths()
	paths := load(t, document(t)).Paths.Map()
	check.Equal(t, len(operations), len(paths))
	check.Equal(t, len(open)+len(keyed), len(paths))
	for _, operation := range operations {
		query, variables, err := handler.Explain(operation.Example)
		if isDownload(operation.Path) {
			query = "" // it is that of the JSON list
		}
		check.OK(t, err, operation.Path)
		check.Equal(t, query, operation.Query, operation.Path)
		check.True(t, operation.Summary != "", "%s: got %v, want its own operation", operation.Path, err)
		for _, parameter := range operation.Parameters {
			_, given := variables[parameter.Name]
			check.True(t, given == (parameter.InPath || parameter.Default != nil), "%s: got a value for %s: %t, want %t", operation.Path, parameter.Name, given, !given)
		}
		check.Equal(t, (strings.HasPrefix(operation.Path, "/api/embeddings") || isDownload(operation.Path)), operation.RequiresKey, "%s: RequiresKey", operation.Path)
	}
	check.Equal(t, rest.ExplorerPath("/api/v1/tools?a=b&c"), "/explorer?path=%2Fapi%2Fv1%2Ftools%3Fa%3Db%26c", "explorer path")
}

// The reference describes every parameter and every object of a response.
func TestReferenceIsComplete(t *testing.T) {
	handler, _ := handlerOver(t, nil)
	schemas := load(t, document(t)).Components.Schemas
	objects := map[string]bool{}
	for _, object := range handler.Objects() {
		objects["`"+object.Name+"`"] = true
		schema := schemas[object.Name]
		if schema == nil || object.Description == "" {
			t.Errorf("%s: got description %q, want one, and a schema in the OpenAPI document", object.Name, object.Description)
			continue
		}
		for name := range schema.Value.Properties {
			check.True(t, slices.ContainsFunc(object.Fields, func(f rest.Field) bool { return f.Name == name && f.Type != "" }), "%s: got no field %s, want all", object.Name, name)
		}
		for _, value := range schema.Value.Enum {
			check.True(t, slices.ContainsFunc(object.Fields, func(f rest.Field) bool { return f.Name == value && f.Description != "" }), "%s: got no value %v, want all", object.Name, value)
		}
	}
	for _, object := range handler.Objects() {
		for _, field := range object.Fields {
			for _, name := range regexp.MustCompile("`[^`]*`").FindAllString(field.Type, -1) {
				check.True(t, objects[name], "%s.%s: got type %s, want an object of the reference", object.Name, field.Name, name)
			}
		}
	}
	for _, operation := range handler.Operations() {
		check.True(t, objects[operation.Response] || isDownload(operation.Path), "%s: got response %s, want an object", operation.Path, operation.Response)
		for _, parameter := range operation.Parameters {
			check.True(t, parameter.Allowed() != "" && parameter.Description != "", "%s: got no values or description of %s, want both", operation.Path, parameter.Name)
		}
	}
	for _, e := range rest.Errors() {
		check.True(t, e.Name != "" && e.Description != "", "got error %v, want a status and its meaning", e)
	}
}
