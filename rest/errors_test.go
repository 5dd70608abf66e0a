package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestInvalidParameters(t *testing.T) {
	const integers, limits = "page must be an integer from 1 to 1000000", "limit must be an integer from 1 to 200"
	const eventTypes = "types must be one or more of catalog.published, category.created, category.updated, category.removed, " +
		"tool.created, tool.updated, tool.retired, tool.removed, retired.updated, price.changed, price.backfilled, " +
		"comparatif.published, comparatif.updated, comparatif.removed, embeddings.changed"
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"tools?page=0":                           integers + ` (got "0").`,
			"tools?page=-1":                          integers + ` (got "-1").`,
			"tools?page=1000001":                     integers + ` (got "1000001").`,
			"tools?page=1.0":                         integers + ` (got "1.0").`,
			"tools?page=%2B1":                        integers + ` (got "+1").`,
			"tools?page=+1":                          integers + ` (got " 1").`,
			"tools?page=%D9%A3":                      integers + ` (got "٣").`,
			"tools?page=0x10":                        integers + ` (got "0x10").`,
			"tools?page=1_000":                       integers + ` (got "1_000").`,
			"tools?page=99999999999999999999999":     integers + ` (got "99999999999999999999999").`,
			"tools?limit=0":                          limits + ` (got "0").`,
			"tools?limit=201":                        limits + ` (got "201").`,
			"tools?limit=1e3":                        limits + ` (got "1e3").`,
			"comparatifs?limit=all":                  limits + ` (got "all").`,
			"pricing?limit=201":                      limits + ` (got "201").`,
			"cimetiere?limit=201":                    limits + ` (got "201").`,
			"tools?price_max=gratuit":                `price_max must be a decimal number, such as 7.5 (got "gratuit").`,
			"tools?pricing=free":                     `pricing must be one of gratuit, freemium, payant (got "free").`,
			"tools?icp=vibe_coder":                   `icp must be one of vibe-coder, agentic-engineer, mixte (got "vibe_coder").`,
			"tools?updated_since=2026-02-30":         `updated_since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`,
			"tools?score_min=NaN":                    `score_min must be a decimal number, such as 7.5 (got "NaN").`,
			"tools?score_min=Inf":                    `score_min must be a decimal number, such as 7.5 (got "Inf").`,
			"tools?score_min=1e999":                  `score_min must be a decimal number, such as 7.5 (got "1e999").`,
			"tools?score_min=0x1p4":                  `score_min must be a decimal number, such as 7.5 (got "0x1p4").`,
			"tools?score_min=8,5":                    `score_min must be a decimal number, such as 7.5 (got "8,5").`,
			"tools?score_min=.5":                     `score_min must be a decimal number, such as 7.5 (got ".5").`,
			"tools?score_min=1_0":                    `score_min must be a decimal number, such as 7.5 (got "1_0").`,
			"tools?obsolescence_max=-Inf":            `obsolescence_max must be a decimal number, such as 7.5 (got "-Inf").`,
			"tools?sort=best":                        `sort must be one of score_desc, score_asc, name_asc, name_desc (got "best").`,
			"tools?sort=price_asc":                   `sort must be one of score_desc, score_asc, name_asc, name_desc (got "price_asc").`,
			"tools?sort=SCORE_DESC":                  `sort must be one of score_desc, score_asc, name_asc, name_desc (got "SCORE_DESC").`,
			"cimetiere?reason=ennui":                 `reason must be one of mort, acquis, deprecie, pivot, absorbe (got "ennui").`,
			"tools?page=1&page=1":                    "page must not be given more than once.",
			"tools?page=1&p%61ge=2":                  "page must not be given more than once.",
			"tools?category=":                        "category must not be empty.",
			"tools?category":                         "category must not be empty.",
			"tools?sort=":                            `sort must be one of score_desc, score_asc, name_asc, name_desc (got "").`,
			"tools?category=%00":                     "category contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?category=%ff":                     "category contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?category=%zz":                     "category contains an invalid escape, a NUL character or invalid UTF-8.",
			"openapi.json?x=%ff":                     "x contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?unknown=%ff":                      "unknown contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?cat%ff=code":                      "The query string contains an invalid escape, a NUL character or invalid UTF-8.",
			"tools?=%ff":                             "The query string contains an invalid escape, a NUL character or invalid UTF-8.",
			"changes?limit=0":                        limits + ` (got "0").`,
			"changes?limit=201":                      limits + ` (got "201").`,
			"changes?after=42":                       `after must be an event ID, such as evt_42 (got "42").`,
			"changes?after=":                         "after must not be empty.",
			"changes?since=2026-02-30":               `since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`,
			"changes?types=tool_created":             eventTypes + ` (got "tool_created").`,
			"changes?types=tool.created,":            eventTypes + ` (got "").`,
			"changes?types=price.changed&types=prix": eventTypes + ` (got "prix").`,
			"tools/%00":                              "The path contains a NUL character or invalid UTF-8.",
			"tools/%ff":                              "The path contains a NUL character or invalid UTF-8.",
			"tools/plume%00":                         "The path contains a NUL character or invalid UTF-8.",
			"comparatifs/%ff":                        "The path contains a NUL character or invalid UTF-8.",
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

func TestCORS(t *testing.T) {
	handler := onSQLite(t)
	preflight := serve(handler, request("OPTIONS", "/api/v1/tools", "Origin", "https://elsewhere.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization"))
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, POST, QUERY",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, If-Range, Last-Event-ID, Range, traceparent, apollographql-client-name, apollographql-client-version, MCP-Protocol-Version",
	} {
		check.Equal(t, preflight.Code, 204, "preflight: %s", name)
		check.Equal(t, preflight.Header().Get(name), want, "preflight: %s", name)
	}
	for _, target := range []string{"/api/v1/tools", "/api/v1/tools?page=x", "/api/v1/tools/nobody"} {
		got := get(handler, target).Header()
		check.Equal(t, got.Get("Access-Control-Allow-Origin"), "*", "%s: Access-Control-Allow-Origin", target)
		for _, name := range []string{"ETag", "Link", "X-Total-Count", "X-Service-Updated-At", "X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "X-GraphQL-Cost"} {
			check.Contains(t, got.Get("Access-Control-Expose-Headers"), name, "%s: not exposed", target)
		}
	}
}

// HTTP/1.0 has neither chunked encoding nor a Host header.
func TestHTTP10(t *testing.T) {
	server := httptest.NewServer(onSQLite(t))
	defer server.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	check.OK(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/stats HTTP/1.0\r\n\r\n")
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check.OK(t, err)
	check.Equal(t, got.StatusCode, 200)
	check.Equal(t, got.ContentLength, 101)
	check.Equal(t, len(got.TransferEncoding), 0)
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
