package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestInvalidParameters(t *testing.T) {
	const integers, limits = "page must be an integer from 1 to 1000000", "limit must be an integer from 1 to 200"
	const asOf = "as_of must be a release number (1 or higher) or a date in the form YYYY-MM-DD"
	const eventTypes = "types must be one or more of catalog.published, category.created, category.updated, category.removed, " +
		"tool.created, tool.updated, tool.retired, tool.removed, retired.updated, price.changed, price.backfilled, " +
		"comparatif.published, comparatif.updated, comparatif.removed, embeddings.changed"
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"tools?page=0":                           integers + ` (got "0").`,
			"tools?limit=201":                        limits + ` (got "201").`,
			"comparatifs?limit=all":                  limits + ` (got "all").`,
			"tools?price_max=gratuit":                `price_max must be a decimal number, such as 7.5 (got "gratuit").`,
			"tools?pricing=free":                     `pricing must be one of gratuit, freemium, payant (got "free").`,
			"tools?icp=vibe_coder":                   `icp must be one of vibe-coder, agentic-engineer, mixte (got "vibe_coder").`,
			"tools?updated_since=2026-02-30":         `updated_since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`,
			"tools?score_min=NaN":                    `score_min must be a decimal number, such as 7.5 (got "NaN").`,
			"tools?sort=best":                        `sort must be one of score_desc, score_asc, name_asc, name_desc (got "best").`,
			"tools?sort=SCORE_DESC":                  `sort must be one of score_desc, score_asc, name_asc, name_desc (got "SCORE_DESC").`,
			"cimetiere?reason=ennui":                 `reason must be one of mort, acquis, deprecie, pivot, absorbe (got "ennui").`,
			"tools?page=1&page=1":                    "page must not be given more than once.",
			"tools?category=":                        "category must not be empty.",
			"tools?category=%00":                     "category contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?category=%zz":                     "category contains an invalid escape, a NUL character or invalid UTF-8.",
			"openapi.json?x=%ff":                     "x contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?unknown=%ff":                      "unknown contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?cat%ff=code":                      "The query string contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?=%ff":                             "The query string contains an invalid escape, a NUL character or invalid UTF-8.",
			"changes?after=42":                       `after must be an event ID, such as evt_42 (got "42").`,
			"changes?since=2026-02-30":               `since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`,
			"changes?types=tool_created":             eventTypes + ` (got "tool_created").`,
			"changes?types=price.changed&types=prix": eventTypes + ` (got "prix").`,
			"tools?as_of=2147483648":                 asOf + ` (got "2147483648").`,
			"stats?as_of=":                           "as_of must not be empty.",
			"tools/%00":                              "The path contains a NUL character or invalid UTF-8.",
			"tools/%ff":                              "The path contains a NUL character or invalid UTF-8.",
			"tools?page=" + strings.Repeat("9", 100): integers + ` (got "` + strings.Repeat("9", 64) + `…").`,
			"tools?score_min=" + url.QueryEscape(`"><script>alert('&')</script>`): `score_min must be a decimal number, such as 7.5 (got "\"><script>alert('&')</script>").`,
		} {
			wantError(t, target, get(handler, "/api/v1/"+target), 400, want)
		}
	})
}

func wantError(t *testing.T, what string, got *httptest.ResponseRecorder, status int, message string) {
	t.Helper()
	want := `{"error":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(message) + `"}`
	check.Equal(t, got.Code, status, what)
	check.Equal(t, got.Body.String(), want, what)
	header := got.Header()
	check.Equal(t, header.Get("Cache-Control"), "no-store", "%s: headers %v", what, header)
	check.Equal(t, header.Get("Content-Type"), "application/json", "%s: headers %v", what, header)
	check.Equal(t, header.Get("ETag"), "", "%s: headers %v", what, header)
}

func TestUnusualRequests(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		want := get(handler, "/api/v1/tools").Body.String()
		for _, query := range []string{
			"?page=1&limit=50&sort=score_desc", "?sort=score_desc", "?limit=050", "?utm_source=x&y", "?&&", "?;", "?page=1&", "?PAGE=7",
			"?" + strings.Repeat("a", 8000), "?" + strings.Repeat("a=1&", 2000),
		} {
			got := get(handler, "/api/v1/tools"+query)
			check.Equal(t, got.Body.String(), want, "%.40s: %d %.200s", query, got.Code, got.Body)
		}
		for _, query := range []string{"score_min=5e-324", "score_min=1.7976931348623157e308", "obsolescence_max=-1e-320", "page=1000000&limit=200", "category=%F0%9F%AA%B6", "category=" + strings.Repeat("x", 5000)} {
			got := get(handler, "/api/v1/tools?"+query)
			check.Equal(t, got.Code, 200, "%s: %s", query, got.Body)
		}
		for _, path := range []string{
			"tools/", "tools//", "/tools", "tools/plume/", "tools/plume/more", "tools/../tools", "tools/./plume", "../v1/tools", "", "TOOLS", "tools%2Fplume", "tools/%2e%2e",
		} {
			got := get(handler, "/api/v1/"+path)
			check.Equal(t, got.Code, 404, "%s: %s", path, got.Body)
			check.True(t, strings.HasPrefix(got.Body.String(), `{"error":"`), "%s: got %d %s, want 404", path, got.Code, got.Body)
		}
		for slug, shown := range map[string]string{
			"plumage%2Fmore":          "plumage/more",
			"..%2fnobody":             "../nobody",
			"Nobody":                  "Nobody",
			"nobody%20":               "nobody ",
			"%F0%9F%AA%B6":            "🪶",
			"'%20OR%20'1'='1":         "' OR '1'='1",
			strings.Repeat("x", 500):  strings.Repeat("x", 64) + "…",
			strings.Repeat("x", 5000): strings.Repeat("x", 64) + "…",
		} {
			wantError(t, slug, get(handler, "/api/v1/tools/"+slug), 404, "No tool has the slug "+shown+".")
		}
	})
}

func TestMethods(t *testing.T) {
	handler := onSQLite(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/api/v1/tools", "/api/v1/tools/plume", "/api/v1/openapi.json", "/api/embeddings/plume"} {
			got := serve(handler, request(method, path))
			wantError(t, method+" "+path, got, 405, "The method "+method+" is not allowed; use GET or HEAD.")
			check.Equal(t, got.Header().Get("Allow"), "GET, HEAD", "%s: Allow", method)
		}
		check.Equal(t, serve(handler, request(method, "/api/v2/tools")).Code, 404, "%s of an unknown path", method)
	}
}

// A canceled request receives no response and does not affect others.
func TestCanceledRequest(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		r := request(http.MethodGet, "/api/v1/tools")
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		got := serve(handler, r.WithContext(ctx))
		check.Equal(t, got.Body.Len(), 0, "%d %s", got.Code, got.Body)
		got = get(handler, "/api/v1/tools")
		check.Equal(t, got.Code, 200, "next request: %s", got.Body)
	})
}

func TestDatabaseUnavailable(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := demoOn(t, s)
		s.Close()
		got := get(handler, "/api/v1/tools")
		wantError(t, "tools", got, 503, "The catalog is temporarily unavailable. Try again in a minute.")
		check.Equal(t, got.Header().Get("Retry-After"), "5", "Retry-After")
		check.Equal(t, get(handler, "/api/v1/openapi.json").Code, 200, "OpenAPI document")
	})
}

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
		check.True(t, want == "" || strings.Contains(got.Get("Access-Control-Expose-Headers"), name), "%s (%s): got %s not exposed to pages of other origins, want it exposed", target, what, name)
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

func TestSeveralToolsAtOnce(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"tools?slugs=relire-svp,plume&sort=name_asc":   "plume,relire-svp",
			"tools?slugs=plume&slugs=relire-svp&limit=1":   "plume",
			"tools?domain=WWW.plume.example&slugs=plume":   "plume",
			"tools?domain=plume.example&slugs=relire-svp":  "",
			"pricing?slugs=relire-svp,plume,plume":         "plume,relire-svp",
			"pricing?domain=plume.example":                 "plume",
			"comparatifs?slugs=plume-vs-relire-svp,nobody": "plume-vs-relire-svp",
			"comparatifs?domain=relire-svp.example":        "plume-vs-relire-svp",
		} {
			var body struct{ Data []struct{ Slug string } }
			got := get(handler, "/api/v1/"+target)
			check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), "%s: %d %s", target, got.Code, got.Body)
			var slugs []string
			for _, item := range body.Data {
				slugs = append(slugs, item.Slug)
			}
			check.Equal(t, strings.Join(slugs, ","), want, target)
		}
		many := "tools?slugs="
		for i := range 201 {
			many += fmt.Sprintf("t%d,", i)
		}
		wantError(t, many, get(handler, "/api/v1/"+strings.TrimSuffix(many, ",")), 400, "slugs must have at most 200 values (got 201).")
		wantError(t, "empty", get(handler, "/api/v1/tools?slugs=plume,"), 400, "slugs must not be empty.")
	})
}
