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
	"palmares/internal/dev/testkit"
)

// What is wrong with a request is told in a sentence that names it.
func TestBadRequests(t *testing.T) {
	const integers, limits = "an integer from 1 to 1000000.", "an integer from 1 to 200."
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"tools?page=0":                           `page: "0" is not ` + integers,
			"tools?page=-1":                          `page: "-1" is not ` + integers,
			"tools?page=1000001":                     `page: "1000001" is not ` + integers,
			"tools?page=1.0":                         `page: "1.0" is not ` + integers,
			"tools?page=%2B1":                        `page: "+1" is not ` + integers,
			"tools?page=+1":                          `page: " 1" is not ` + integers,
			"tools?page=%D9%A3":                      `page: "٣" is not ` + integers,
			"tools?page=0x10":                        `page: "0x10" is not ` + integers,
			"tools?page=1_000":                       `page: "1_000" is not ` + integers,
			"tools?page=99999999999999999999999":     `page: "99999999999999999999999" is not ` + integers,
			"tools?limit=0":                          `limit: "0" is not ` + limits,
			"tools?limit=201":                        `limit: "201" is not ` + limits,
			"tools?limit=1e3":                        `limit: "1e3" is not ` + limits,
			"comparatifs?limit=all":                  `limit: "all" is not ` + limits,
			"pricing?limit=201":                      `limit: "201" is not ` + limits,
			"cimetiere?limit=201":                    `limit: "201" is not ` + limits,
			"tools?score_min=NaN":                    `score_min: "NaN" is not a decimal number, such as 7.5.`,
			"tools?score_min=Inf":                    `score_min: "Inf" is not a decimal number, such as 7.5.`,
			"tools?score_min=1e999":                  `score_min: "1e999" is not a decimal number, such as 7.5.`,
			"tools?score_min=0x1p4":                  `score_min: "0x1p4" is not a decimal number, such as 7.5.`,
			"tools?score_min=8,5":                    `score_min: "8,5" is not a decimal number, such as 7.5.`,
			"tools?score_min=.5":                     `score_min: ".5" is not a decimal number, such as 7.5.`,
			"tools?score_min=1_0":                    `score_min: "1_0" is not a decimal number, such as 7.5.`,
			"tools?obsolescence_max=-Inf":            `obsolescence_max: "-Inf" is not a decimal number, such as 7.5.`,
			"tools?sort=best":                        `sort: "best" is not one of score_desc, score_asc, name_asc, name_desc.`,
			"tools?sort=price_asc":                   `sort: "price_asc" is not one of score_desc, score_asc, name_asc, name_desc.`,
			"tools?sort=SCORE_DESC":                  `sort: "SCORE_DESC" is not one of score_desc, score_asc, name_asc, name_desc.`,
			"cimetiere?reason=ennui":                 `reason: "ennui" is not one of mort, acquis, deprecie, pivot, absorbe.`,
			"tools?page=1&page=1":                    "page: is given twice, where once is allowed.",
			"tools?page=1&p%61ge=2":                  "page: is given twice, where once is allowed.",
			"tools?category=":                        `category: "" is not a text.`,
			"tools?category":                         `category: "" is not a text.`,
			"tools?sort=":                            `sort: "" is not one of score_desc, score_asc, name_asc, name_desc.`,
			"tools?category=%00":                     "The query string holds a broken escape, a NUL, or what is not UTF-8.",
			"tools?category=%ff":                     "The query string holds a broken escape, a NUL, or what is not UTF-8.",
			"tools?category=%zz":                     "The query string holds a broken escape, a NUL, or what is not UTF-8.",
			"openapi.json?x=%ff":                     "The query string holds a broken escape, a NUL, or what is not UTF-8.",
			"tools?unknown=%ff":                      "The query string holds a broken escape, a NUL, or what is not UTF-8.",
			"tools/%00":                              "The path holds a NUL, or what is not UTF-8.",
			"tools/%ff":                              "The path holds a NUL, or what is not UTF-8.",
			"tools/plume%00":                         "The path holds a NUL, or what is not UTF-8.",
			"comparatifs/%ff":                        "The path holds a NUL, or what is not UTF-8.",
			"tools?page=" + strings.Repeat("9", 100): `page: "` + strings.Repeat("9", 64) + `…" is not ` + integers,
			"tools?score_min=" + url.QueryEscape(`"><script>alert('&')</script>`): `score_min: "\"><script>alert('&')</script>" is not a decimal number, such as 7.5.`,
		} {
			refused(t, target, get(handler, "/api/v1/"+target), 400, want)
		}
	})
}

func refused(t *testing.T, what string, got *httptest.ResponseRecorder, status int, message string) {
	t.Helper()
	want := `{"error":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(message) + `"}`
	if got.Code != status || got.Body.String() != want {
		t.Errorf("%s: %d %s\nwant %s", what, got.Code, got.Body, want)
	}
	header := got.Header()
	if header.Get("Cache-Control") != "no-store" || header.Get("Content-Type") != "application/json" || header.Get("ETag") != "" {
		t.Errorf("%s: %v", what, header)
	}
}

// What is odd, but not wrong.
func TestOddRequests(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		plain := get(handler, "/api/v1/tools").Body.String()
		for _, query := range []string{
			"?page=1&limit=50&sort=score_desc", "?sort=score_desc", "?limit=050", "?utm_source=x&y", "?&&", "?;", "?page=1&", "?PAGE=7",
			"?" + strings.Repeat("a", 8000), "?" + strings.Repeat("a=1&", 2000),
		} {
			if got := get(handler, "/api/v1/tools"+query); got.Body.String() != plain {
				t.Errorf("%.40s: %d %.200s", query, got.Code, got.Body)
			}
		}
		for _, query := range []string{"score_min=5e-324", "score_min=1.7976931348623157e308", "obsolescence_max=-1e-320", "page=1000000&limit=200", "category=%F0%9F%AA%B6", "category=" + strings.Repeat("x", 5000)} {
			if got := get(handler, "/api/v1/tools?"+query); got.Code != 200 {
				t.Errorf("%s: %d %s", query, got.Code, got.Body)
			}
		}
		for _, path := range []string{
			"tools/", "tools//", "/tools", "tools/plume/", "tools/plume/more", "tools/../tools", "tools/./plume", "../v1/tools", "", "TOOLS", "tools%2Fplume", "tools/%2e%2e",
		} {
			if got := get(handler, "/api/v1/"+path); got.Code != 404 || !strings.HasPrefix(got.Body.String(), `{"error":"`) {
				t.Errorf("%s: %d %s", path, got.Code, got.Body)
			}
		}
		for slug, shown := range map[string]string{
			"plume%2Fmore":            "plume/more",
			"..%2fplume":              "../plume",
			"Plume":                   "Plume",
			"plume%20":                "plume ",
			"%F0%9F%AA%B6":            "🪶",
			"'%20OR%20'1'='1":         "' OR '1'='1",
			strings.Repeat("x", 500):  strings.Repeat("x", 64) + "…",
			strings.Repeat("x", 5000): strings.Repeat("x", 64) + "…",
		} {
			refused(t, slug, get(handler, "/api/v1/tools/"+slug), 404, "No tool has the slug "+shown+".")
		}
	})
}

func TestMethods(t *testing.T) {
	handler := onSQLite(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/api/v1/tools", "/api/v1/tools/plume", "/api/v1/openapi.json", "/api/embeddings/plume"} {
			got := serve(handler, request(method, path))
			refused(t, method+" "+path, got, 405, "The method "+method+" is not allowed: use GET.")
			if allow := got.Header().Get("Allow"); allow != "GET, HEAD" {
				t.Errorf("%s: allowed is %q", method, allow)
			}
		}
		if got := serve(handler, request(method, "/api/v2/tools")); got.Code != 404 {
			t.Errorf("%s of nothing: %d", method, got.Code)
		}
	}
}

// A browser of any origin asks before it sends a key, and may read what it
// needs to.
func TestOtherOrigins(t *testing.T) {
	handler := onSQLite(t)
	preflight := serve(handler, request("OPTIONS", "/api/v1/tools", "Origin", "https://elsewhere.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization"))
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, POST",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, Last-Event-ID, traceparent, apollographql-client-name, apollographql-client-version",
	} {
		if got := preflight.Header().Get(name); preflight.Code != 204 || got != want {
			t.Errorf("preflight: %d, %s is %q", preflight.Code, name, got)
		}
	}
	for _, target := range []string{"/api/v1/tools", "/api/v1/tools?page=x", "/api/v1/tools/nobody"} {
		got := get(handler, target).Header()
		if got.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: is closed", target)
		}
		for _, name := range []string{"ETag", "Link", "X-Total-Count", "X-Service-Updated-At", "X-RateLimit-Tier", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"} {
			if !strings.Contains(got.Get("Access-Control-Expose-Headers"), name) {
				t.Errorf("%s: %s is hidden", target, name)
			}
		}
	}
}

// HTTP/1.0 has neither chunks nor a Host header.
func TestHTTP10(t *testing.T) {
	server := httptest.NewServer(onSQLite(t))
	defer server.Close()
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/stats HTTP/1.0\r\n\r\n")
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || got.StatusCode != 200 || got.ContentLength != 101 || len(got.TransferEncoding) > 0 {
		t.Errorf("%v, %+v", err, got)
	}
}

// Who goes away is not answered, and takes nobody along.
func TestCallerGoesAway(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		r := request(http.MethodGet, "/api/v1/tools")
		ctx, leave := context.WithCancel(r.Context())
		leave()
		if got := serve(handler, r.WithContext(ctx)); got.Body.Len() > 0 {
			t.Errorf("%d: %s", got.Code, got.Body)
		}
		if got := get(handler, "/api/v1/tools"); got.Code != 200 {
			t.Errorf("the next: %d %s", got.Code, got.Body)
		}
	})
}

// A database that is gone is told in our words, and is no reason to keep from
// trying again.
func TestDatabaseGone(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := demoOn(t, s)
		s.Close()
		got := get(handler, "/api/v1/tools")
		refused(t, "tools", got, 503, "The catalog cannot be read at the moment.")
		if got.Header().Get("Retry-After") != "5" {
			t.Errorf("%v", got.Header())
		}
		if got := get(handler, "/api/v1/openapi.json"); got.Code != 200 {
			t.Errorf("the document: %d", got.Code)
		}
	})
}
