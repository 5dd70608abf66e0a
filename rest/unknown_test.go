package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// checkHint requests a target several times, and checks a header of each response.
func checkHint(t *testing.T, handler http.Handler, target, name, want string) {
	t.Helper()
	first := get(handler, target)
	tag := first.Header().Get("ETag")
	for what, got := range map[string]http.Header{
		"GET": first.Header(), "again": get(handler, target).Header(), "HEAD": serve(handler, request(http.MethodHead, target)).Header(),
		"304": get(handler, target, "If-None-Match", tag).Header(),
	} {
		values := got.Values(name)
		check.Equal(t, strings.Join(values, "\n"), want, "%s (%s): %s %q", target, what, name, values)
		check.True(t, len(values) <= 1, "%s (%s): got %s %q, want %q", target, what, name, values, want)
		if want != "" && !strings.Contains(got.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s (%s): got %s not exposed to pages of other origins, want it exposed", target, what, name)
		}
	}
	check.Equal(t, first.Code, 200, "%s: ETag %q", target, tag)
	check.True(t, tag != "", "%s: got %d with ETag %q, want 200 with one", target, first.Code, tag)
}

func TestUnknownParameters(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		// First: a full cache may evict what it has just stored.
		known, unknown := get(handler, "/api/v1/tools?limit=7"), get(handler, "/api/v1/tools?limit=7&categorie=code")
		check.Equal(t, unknown.Header().Get("ETag"), known.Header().Get("ETag"), unknown.Header())
		check.Equal(t, unknown.Header().Get("Cache-Status"), "palmares; hit", unknown.Header())
		for target, want := range map[string]string{
			"tools?categorie=code":             "categorie (did you mean category?)",
			"tools?cat%C3%A9gorie=code":        "cat%C3%A9gorie (did you mean category?)",
			"tools?min_score=8":                "min_score (did you mean score_min?)",
			"tools?scoreMin=8&limit=2":         "scoreMin (did you mean score_min?)",
			"tools?PAGE=7":                     "PAGE (did you mean page?)",
			"tools?category=code&utm_source=":  "utm_source",
			"tools?x=1&x=2&y":                  "x, y",
			"tools?a&b&c&d&e&f":                "a, b, c, d, e",
			"tools?&&=1&;":                     "%3B",
			"tools?%0D%0AX-Evil:%201":          "%0D%0AX-Evil%3A+1",
			"tools?%22%2C%20(x)=1":             "%22%2C+%28x%29",
			"tools?" + strings.Repeat("é", 40): strings.Repeat("%C3%A9", 10) + "%C3",
			"tools?" + strings.Repeat("a", 99): strings.Repeat("a", 64),
			"tools/plume?page=2":               "page",
			"stats?category=code":              "category",
			"changes?type=tool.created":        "type (did you mean types?)",
			"tools.csv?scoremin=8":             "scoremin (did you mean score_min?)",
			"tools?format=csv&scoremin=8":      "scoremin (did you mean score_min?)",
			"openapi.json?whatever=1":          "whatever",
			"openapi.yaml?whatever=1":          "whatever",
			"tools":                            "",
			"tools?category=code&sort=name_asc&page=1&limit=3&score_min=1&obsolescence_max=9&as_of=8": "",
			"tools?format=csv&dialect=excel-fr": "",
			"tools.csv?format=csv":              "",
			"tools.csv?token=x":                 "",
			"pricing?format=csv&token=x":        "",
			"stats?token=x":                     "token",
		} {
			checkHint(t, handler, "/api/v1/"+target, "X-Unknown-Parameters", want)
		}
		for _, target := range []string{"tools?pag=1&page=x", "tools/nobody?pag=1"} {
			got := get(handler, "/api/v1/"+target)
			check.True(t, got.Code >= 400, "%s: got %d %v, want an error without hints", target, got.Code, got.Header())
			check.Equal(t, got.Header().Get("X-Unknown-Parameters"), "", "%s: %d %v", target, got.Code, got.Header())
		}
	})
}

func TestUnknownValues(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"v1/tools?category=coding":                      "category=coding (did you mean code?)",
			"v1/tools?category=Code&score_min=5":            "category=Code (did you mean code?)",
			"v1/tools?category=R%C3%A9daction":              "category=R%C3%A9daction (did you mean redaction?)",
			"v1/tools?category=coding&as_of=1":              "category=coding (did you mean code?)",
			"v1/tools.csv?category=coding":                  "category=coding (did you mean code?)",
			"v1/tools?category=coding&format=ndjson":        "category=coding (did you mean code?)",
			"v1/comparatifs?category=voice":                 "category=voice (did you mean voix?)",
			"v1/pricing?category=images":                    "category=images (did you mean image?)",
			"v1/cimetiere?category=%0A":                     "category=%0A",
			"v1/tools?category=code,chat":                   "category=code%2Cchat (one category; for several, use GraphQL: ToolFilter.categories)",
			"v1/cimetiere?category=code,chat":               "category=code%2Cchat (did you mean code?)",
			"v1/changes?slug=plum":                          "slug=plum (did you mean plume?)",
			"v1/changes?slug=zzzzzz&category=nowhere":       "category=nowhere, slug=zzzzzz",
			"v1/changes?slug=plume":                         "",
			"v1/changes?slug=plume&types=category.removed":  "",
			"v1/changes?slug=vigie-3&since=2100-01-01":      "",
			"v1/changes?slug=code&since=2100-01-01":         "",
			"v1/changes?category=nowhere":                   "category=nowhere",
			"embeddings?category=agent":                     "category=agent (did you mean agents?)",
			"v1/tools?category=" + strings.Repeat("x", 150): "category=" + strings.Repeat("x", 64),
			"v1/tools?slugs=plume,plum,nobody&limit=1":      "slugs=nobody, slugs=plum (did you mean plume?)",
			"v1/tools.csv?slugs=plum":                       "slugs=plum (did you mean plume?)",
			"v1/pricing?slugs=a,b,c,d,e,f":                  "slugs=a, slugs=b, slugs=c, slugs=d, slugs=e",
			"v1/comparatifs?slugs=plume-vs-ecritoire":       "slugs=plume-vs-ecritoire (did you mean plume-vs-ecritoire-cie?)",
			"v1/tools?domain=plume.example,nobody.example":  "domain=nobody.example",
			"v1/tools?slugs=plume&as_of=1":                  "",
			"v1/tools?domain=https://www.plume.example/x":   "",
			"v1/tools?category=code":                        "",
			"v1/tools?category=code&score_min=11":           "",
			"v1/tools?category=code&page=1000":              "",
			"v1/tools?page=1000":                            "",
			"v1/stats?category=coding":                      "",
		} {
			checkHint(t, handler, "/api/"+target, "X-Unknown-Values", want)
		}
	})
}

// Before the first import, no category is known, and none can be unknown.
func TestUnknownValuesWithoutCatalog(t *testing.T) {
	handler, _ := handlerOver(t, testkit.Open(t, testkit.SQLite(t)))
	got := get(handler, "/api/v1/tools?category=code")
	check.Equal(t, got.Code, 200, got.Header())
	check.Equal(t, got.Header().Get("X-Unknown-Values"), "", got.Header())
}

func TestNearestSlugs(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"v1/tools/plum":                             "No tool has the slug plum; did you mean plume?",
			"v1/tools/Pl%C3%BBme":                       "No tool has the slug Plûme; did you mean plume?",
			"v1/tools/plum/versions":                    "No release has a tool with the slug plum; did you mean plume?",
			"v1/pricing/enclume8":                       "No tool has the slug enclume8; did you mean enclume-8?",
			"v1/comparatifs/ecritoire-cie-vs-plume":     "No published comparison has the slug ecritoire-cie-vs-plume; did you mean plume-vs-ecritoire-cie?",
			"v1/comparatifs/plume-vs-ecritoire":         "No published comparison has the slug plume-vs-ecritoire; did you mean plume-vs-ecritoire-cie?",
			"embeddings/plum":                           "No tool has the slug plum; did you mean plume?",
			"v1/tools/nothing-like-it":                  "No tool has the slug nothing-like-it.",
			"v1/comparatifs/nothing-like-it":            "No published comparison has the slug nothing-like-it.",
			"v1/tools/plum?as_of=1":                     "No tool has the slug plum; did you mean plume?",
			"v1/tools/" + strings.Repeat("plume-", 40):  "No tool has the slug " + strings.Repeat("plume-", 40)[:64] + "….",
			"v1/tools/plume-" + strings.Repeat("x", 90): "No tool has the slug plume-" + strings.Repeat("x", 58) + "…; did you mean plume?",
		} {
			wantError(t, target, get(handler, "/api/"+target), 404, want)
		}
	})
}

// A retired tool is not suggested: its path is a 404 too.
func TestNearestSlugsAreActive(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		publishFeed(t, s, responses, feedtest.Catalog("2026-11-01", feedtest.Tool("plumes-noires"), &record.Retired{Slug: "plume", Name: "Plume", Category: "code", Reason: "mort", RetiredAt: "2026-01-01", Note: "Fermé."}))
		wantError(t, "plum", get(handler, "/api/v1/tools/plum"), 404, "No tool has the slug plum; did you mean plumes-noires?")
	})
}
