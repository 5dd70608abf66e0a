package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// asked is one request for each path, and what its golden file is called.
var asked = map[string]string{
	"tools":       "/api/v1/tools?limit=2",
	"tool":        "/api/v1/tools/plume",
	"comparatifs": "/api/v1/comparatifs?limit=2",
	"comparatif":  "/api/v1/comparatifs/plume-vs-ecritoire-cie",
	"prices":      "/api/v1/pricing?limit=2",
	"price":       "/api/v1/pricing/plume",
	"retired":     "/api/v1/cimetiere?limit=2",
	"categories":  "/api/v1/categories",
	"stats":       "/api/v1/stats",
	"embeddings":  "/api/embeddings/plume",

	"tools-everything-given": "/api/v1/tools?sort=name_desc&page=2&limit=3&category=code&score_min=6.5&obsolescence_max=5",
	"tools-past-the-end":     "/api/v1/tools?page=7",
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
}

// Every path answers with the bytes of its golden file, on each database.
func TestGoldenAnswers(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for name, target := range asked {
			golden(t, "testdata/answers/"+name+".http", transcript(target, get(handler, target)))
		}
	})
}

// transcript is a whole answer as text.
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

// The document's examples are real answers.
func TestExamplesAreAnswers(t *testing.T) {
	handler := onSQLite(t)
	for _, path := range pathsOf(t, document(t)) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, get(handler, path.example).Body.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		golden(t, "examples/"+path.id+".json", append(indented.Bytes(), '\n'))
	}
}

type described struct{ id, example string }

// pathsOf are the paths of a document, each with the request that its
// example is an answer to.
func pathsOf(t *testing.T, document []byte) []described {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	var all []described
	for path, item := range doc.Paths.Map() {
		for _, ref := range item.Get.Parameters {
			switch ref.Value.Name {
			case "slug":
				path = strings.Replace(path, "{slug}", fmt.Sprint(ref.Value.Example), 1)
			case "limit":
				path += "?limit=2"
			}
		}
		all = append(all, described{item.Get.OperationID, path})
	}
	return all
}

// Before the first publication every list is empty, and nothing has a date.
func TestEmptyCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := serving(t, s)
		for target, want := range map[string]string{
			"/api/v1/tools":       `{"data":[],"meta":{"total":0,"page":1,"limit":50,"pages":0}}`,
			"/api/v1/comparatifs": `{"data":[],"meta":{"total":0,"page":1,"limit":50,"pages":0}}`,
			"/api/v1/pricing":     `{"data":[]}`,
			"/api/v1/cimetiere":   `{"data":[]}`,
			"/api/v1/categories":  `{"data":[]}`,
			"/api/v1/stats":       `{"tools_total":0,"tools_tested":0,"tools_avg_score":0,"tools_retired":0,"comparatifs_total":0}`,
			"/api/v1/tools/plume": `{"error":"No tool has the slug plume."}`,
		} {
			got := get(handler, target)
			if body := got.Body.String(); body != want || got.Header().Get("X-Service-Updated-At") != "" || got.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %s\n%v", target, body, got.Header())
			}
		}
	})
}

// HEAD is GET without the body.
func TestHead(t *testing.T) {
	server := httptest.NewServer(onSQLite(t))
	defer server.Close()
	for _, target := range []string{"/api/v1/tools", "/api/v1/tools/plume", "/api/v1/tools/nobody", "/api/v1/openapi.json"} {
		var answers [2]*http.Response
		for i, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequest(method, server.URL+target, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", "identity")
			if answers[i], err = http.DefaultClient.Do(r); err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(answers[i].Body)
			answers[i].Body.Close()
			answers[i].Header.Del("Date")
			if (len(body) > 0) != (method == http.MethodGet) {
				t.Errorf("%s %s: %d bytes", method, target, len(body))
			}
		}
		if fmt.Sprint(answers[0].Status, answers[0].Header) != fmt.Sprint(answers[1].Status, answers[1].Header) {
			t.Errorf("%s: GET %v\nHEAD %v", target, answers[0].Header, answers[1].Header)
		}
	}
}

// A tool that goes from the list to the graveyard and back is always one of
// the two, to who reads meanwhile.
func TestNotFoundIsOfOneRelease(t *testing.T) {
	retired := bytes.ReplaceAll(demo.Catalog, []byte(`"slug":"plume"`), []byte(`"slug":"plume-x"`))
	retired = append(bytes.TrimRight(retired, "\n"), []byte("\n"+`{"type":"cimetiere","slug":"plume","name":"Plume","category":"redaction","reason":"mort","retired_at":"2026-11-01","note":"Finie."}`+"\n")...)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := demoOn(t, s)
		ctx, stop := context.WithTimeout(t.Context(), wait.Limit)
		defer stop()
		var published atomic.Int64
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := feed.Import(ctx, s, bytes.NewReader([][]byte{retired, demo.Catalog}[i%2]), feed.Options{Force: true}); err == nil {
					published.Add(1)
				}
			}
		}()
		for answers := 0; answers < 50 || published.Load() < 4; answers++ {
			if ctx.Err() != nil {
				t.Fatalf("only %d releases", published.Load())
			}
			got := get(handler, "/api/v1/tools/plume")
			if body := got.Body.String(); got.Code != 200 && !strings.Contains(body, "The tool plume is retired") {
				t.Fatalf("%d: %s", got.Code, body)
			}
		}
	})
}
