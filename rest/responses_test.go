package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// goldenRequests maps the names of golden files to requests. A path that is not
// listed under the name of its operation is tested with its example request from
// the OpenAPI document.
var goldenRequests = map[string]string{
	"tool":       "/api/v1/tools/plume",
	"comparatif": "/api/v1/comparatifs/plume-vs-ecritoire-cie",
	"price":      "/api/v1/pricing/plume",
	"embeddings": "/api/embeddings/plume",

	"tools-everything-given": "/api/v1/tools?sort=name_desc&page=2&limit=3&category=code&score_min=6.5&obsolescence_max=5",
	"tools-past-the-end":     "/api/v1/tools?page=7",
	"tools-filtered":         "/api/v1/tools?pricing=freemium&icp=agentic-engineer&price_max=30&updated_since=2026-01-01&score_min=6",
	"tools-of-an-audience":   "/api/v1/tools?icp=vibe-coder&limit=2",
	"tools-free":             "/api/v1/tools?pricing=gratuit&limit=2",
	"tools-for-ten-euros":    "/api/v1/tools?price_max=10&limit=2", // MCP counts the same 15 tools
	"tools-found":            "/api/v1/tools?search=voix&limit=5",  // by relevance, as in GraphQL
	"tools-without-release":  "/api/v1/tools?as_of=99",
	"tools-none":             "/api/v1/tools?category=nowhere",
	"comparatifs-category":   "/api/v1/comparatifs?category=code",
	"prices-category":        "/api/v1/pricing?category=image",
	"retired-filtered":       "/api/v1/cimetiere?reason=deprecie&category=code",
	"tool-unknown":           "/api/v1/tools/nobody",
	"tool-retired":           "/api/v1/tools/vigie-3",
	"price-retired":          "/api/v1/pricing/vigie-3",
	"comparatif-unknown":     "/api/v1/comparatifs/nobody",
	"embeddings-unknown":     "/api/embeddings/nobody",
	"embeddings-outside":     "/api/embeddings/trame-72",
	"embeddings-retired":     "/api/embeddings/vigie-3",
	"unknown-path":           "/api/v1/outils",
	"changes-filtered":       "/api/v1/changes?types=price.changed,tool.retired&category=code&since=2026-01-01&limit=3",
	"changes-none":           "/api/v1/changes?slug=nobody",
	"changes-earlier":        "/api/v1/changes?types=catalog.published&as_of=2",
}

func TestGoldenResponses(t *testing.T) {
	requests := maps.Clone(goldenRequests)
	for _, path := range documentedPaths(t, document(t)) {
		if _, listed := requests[path.operation]; !listed {
			requests[path.operation] = path.example
		}
	}
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for name, target := range requests {
			golden(t, "testdata/responses/"+name+".http", stable(transcript(target, get(handler, target))))
		}
	})
}

var (
	eventIDs  = regexp.MustCompile(`evt_[0-9]{10,}`)
	tokens    = regexp.MustCompile(`"next_sync":( ?)"[^"]*"`)
	published = regexp.MustCompile(`"timestamp":( ?)"[^"]*"`)
	eventTags = regexp.MustCompile(`Etag: .*`)
	mementos  = regexp.MustCompile(`Memento-Datetime: .*`)
)

// stable replaces what differs each time the demo catalog is imported: the
// numbers of events, which keep their order, when they were published, tokens,
// and the ETag of such a response.
func stable(text []byte) []byte {
	if tokens.Match(text) {
		return eventTags.ReplaceAll(tokens.ReplaceAll(text, []byte(`"next_sync":$1"…"`)), []byte(`Etag: "…"`))
	}
	ids := eventIDs.FindAllString(string(text), -1)
	if len(ids) == 0 {
		return text
	}
	slices.Sort(ids) // of equal length
	ids = slices.Compact(ids)
	text = eventIDs.ReplaceAllFunc(text, func(id []byte) []byte {
		return fmt.Appendf(nil, "evt_%d", 4711+slices.Index(ids, string(id)))
	})
	text = published.ReplaceAll(text, []byte(`"timestamp":$1"2026-11-10T08:00:00Z"`))
	text = mementos.ReplaceAll(text, []byte("Memento-Datetime: Tue, 10 Nov 2026 08:00:00 GMT"))
	return eventTags.ReplaceAll(text, []byte(`Etag: "…"`))
}

// transcript returns a whole response as text.
func transcript(target string, got *httptest.ResponseRecorder) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "GET %s\n\n%d\n", target, got.Code)
	for _, name := range slices.Sorted(maps.Keys(got.Header())) {
		for _, value := range got.Header()[name] {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", got.Body)
	return out.Bytes()
}

// Before the first import every list is empty, and responses have no date.
func TestEmptyCatalog(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler := serving(t, s)
		for target, want := range map[string]string{
			"/api/v1/tools":       `{"data":[],"meta":{"total":0,"page":1,"limit":50,"pages":0}}`,
			"/api/v1/comparatifs": `{"data":[],"meta":{"total":0,"page":1,"limit":50,"pages":0}}`,
			"/api/v1/pricing":     `{"data":[]}`,
			"/api/v1/cimetiere":   `{"data":[]}`,
			"/api/v1/categories":  `{"data":[]}`,
			"/api/v1/changes":     `{"data":[],"next":null}`,
			"/api/v1/stats":       `{"tools_total":0,"tools_tested":0,"tools_avg_score":0,"tools_retired":0,"comparatifs_total":0}`,
			"/api/v1/tools/plume": `{"error":"No tool has the slug plume."}`,
			// No category is known, and none can be unknown.
			"/api/v1/tools?category=code": `{"data":[],"meta":{"total":0,"page":1,"limit":50,"pages":0}}`,
		} {
			got := get(handler, target)
			check.Equal(t, got.Body.String(), want, "%s: %v", target, got.Header())
			check.Equal(t, got.Header().Get("X-Service-Updated-At")+got.Header().Get("X-Unknown-Values"), "", "%s: %v", target, got.Header())
			check.Equal(t, got.Header().Get("Cache-Control"), "no-store", "%s: %v", target, got.Header())
		}
	})
}

func TestHead(t *testing.T) {
	server := httptest.NewServer(onSQLite(t))
	defer server.Close()
	for _, target := range []string{"/api/v1/tools", "/api/v1/tools/plume", "/api/v1/tools/nobody", "/api/v1/openapi.json"} {
		var responses [2]*http.Response
		for i, method := range []string{http.MethodGet, http.MethodHead} {
			r := check.Try(http.NewRequest(method, server.URL+target, nil)).OK(t)
			r.Header.Set("Accept-Encoding", "identity")
			responses[i] = check.Try(http.DefaultClient.Do(r)).OK(t)
			body, _ := io.ReadAll(responses[i].Body)
			responses[i].Body.Close()
			responses[i].Header.Del("Date")
			responses[i].Header.Del("Cache-Status") // the second response is cached
			check.Equal(t, (len(body) > 0), (method == http.MethodGet), "%s %s: body of bytes: %d", method, target, len(body))
		}
		check.Equal(t, fmt.Sprint(responses[0].Status, responses[0].Header), fmt.Sprint(responses[1].Status, responses[1].Header), "HEAD %s", target)
	}
}

// While a tool is retired and restored over and over, readers always find it
// either active or retired.
func TestNotFoundUsesOneRelease(t *testing.T) {
	retired := bytes.ReplaceAll(demo.Catalog(), []byte(`"slug":"plume"`), []byte(`"slug":"plume-x"`))
	retired = append(bytes.TrimRight(retired, "\n"), []byte("\n"+`{"type":"cimetiere","slug":"plume","name":"Plume","category":"redaction","reason":"mort","retired_at":"2026-11-01","note":"Finie."}`+"\n")...)
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler := demoOn(t, s)
		ctx, stop := context.WithTimeout(t.Context(), wait.Limit)
		defer stop()
		var published atomic.Int64
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := publish.Import(ctx, s, feed.NewLines(bytes.NewReader([][]byte{retired, demo.Catalog()}[i%2])), publish.Options{Force: true}); err == nil {
					published.Add(1)
				}
			}
		}()
		for responses := 0; responses < 50 || published.Load() < 4; responses++ {
			check.OK(t, ctx.Err(), "%d releases in time", published.Load())
			got := get(handler, "/api/v1/tools/plume")
			body := got.Body.String()
			check.MustTrue(t, got.Code == 200 || strings.Contains(body, "The tool plume is retired;"), "got %d %s, want 200 or a retired tool", got.Code, body)
		}
	})
}

// cached returns a handler that serves the demo catalog, and its cache.
func cached(t *testing.T) (http.Handler, *cache.Cache) {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	demoOn(t, s)
	return handlerOver(t, s)
}

// Requests that differ only in the order of parameters, explicit defaults or
// unknown parameters share one cached response.
func TestEquivalentRequestsShareResponse(t *testing.T) {
	handler, responses := cached(t)
	same := []string{
		"/api/v1/tools", "/api/v1/tools?", "/api/v1/tools?page=1", "/api/v1/tools?limit=50&page=1&sort=score_desc", "/api/v1/tools?page=01&limit=050",
		"/api/v1/tools?unknown=1", "/api/v1/tools?sort=%73core_desc", "/api/v1/%74ools",
	}
	for _, target := range same {
		check.Must(t, get(handler, target).Code, 200, target)
	}
	check.Equal(t, responses.Misses.Load(), 1, "cache misses")
	before := responses.Misses.Load()
	others := []string{
		"/api/v1/tools?page=2", "/api/v1/tools?category=code", "/api/v1/tools?score_min=0", "/api/v1/pricing", "/api/v1/tools/plume", "/api/v1/pricing/plume",
		"/api/v1/tools/plume%3Fpage=2", "/api/v1/tools?category=a%26page%3D2",
	}
	for _, target := range others {
		get(handler, target)
	}
	check.Equal(t, responses.Misses.Load()-before, int64(len(others)), "cache misses")
}

func TestCachedEmbeddingsRequireKey(t *testing.T) {
	handler, responses := cached(t)
	for range 2 {
		check.Must(t, get(handler, "/api/embeddings/plume").Code, 200)
	}
	check.Equal(t, responses.Hits.Load(), 1, "cache hits")
	r := request(http.MethodGet, "/api/embeddings/plume")
	got := serve(handler, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Anonymous})))
	wantError(t, "without a key", got, 401, "This endpoint requires an API key. Create one at https://palmares.example/account.")
}

// panicking is a catalog that can be made to return a nil client, so that
// readers panic.
type panicking struct {
	*store.Store
	panics bool
}

func (p *panicking) Client() *ent.Client {
	if p.panics {
		return nil
	}
	return p.Store.Client()
}

// A panic becomes a 500 response, which is not cached.
func TestPanic(t *testing.T) {
	catalog := &panicking{Store: testkit.Open(t, testkit.SQLite(t))}
	handler, responses := handlerOver(t, catalog)
	publishFeed(t, catalog.Store, responses, demo.Catalog())
	get(handler, "/api/v1/tools/plume") // loads the release
	catalog.panics = true
	for range 2 {
		wantError(t, "panic", get(handler, "/api/embeddings/plume"), 500, "Something went wrong on our side.")
	}
}
