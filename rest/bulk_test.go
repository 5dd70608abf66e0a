package rest_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/rest"
)

// bulkLists are lists that can be downloaded, with filters.
var bulkLists = []string{
	"/api/v1/tools?", "/api/v1/tools?sort=name_desc&score_min=5&", "/api/v1/tools?category=code&", "/api/v1/tools?search=plume&", "/api/v1/tools?category=nowhere&", "/api/v1/tools?as_of=1&",
	"/api/v1/comparatifs?", "/api/v1/pricing?", "/api/v1/pricing?category=code&", "/api/v1/cimetiere?", "/api/v1/cimetiere?reason=mort&", "/api/v1/categories?",
}

// itemsOf returns the items of a list from all of its pages.
func itemsOf(t *testing.T, handler http.Handler, list string) (items []string) {
	t.Helper()
	for page := 1; ; page++ {
		got := get(handler, list+"limit=150&page="+strconv.Itoa(page))
		var body struct{ Data []json.RawMessage }
		check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), list)
		check.Must(t, got.Code, 200, "%s: %s", list, got.Body)
		for _, item := range body.Data {
			items = append(items, string(item))
		}
		if len(body.Data) == 0 || strings.HasPrefix(list, "/api/v1/categories") {
			return items
		}
	}
}

// ndjson returns items as a download has them.
func ndjson(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return strings.Join(items, "\n") + "\n"
}

// checkCSV compares a table with the items of the same list.
func checkCSV(t *testing.T, list, table, dialect string, items []string) {
	t.Helper()
	excelFR := strings.HasSuffix(dialect, "=excel-fr")
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(table, "\uFEFF")))
	if excelFR {
		in.Comma = ';'
	}
	rows := check.Try(in.ReadAll()).OK(t, list)
	check.Must(t, len(rows), len(items)+1, list)
	check.Must(t, strings.HasPrefix(table, "\uFEFF"), dialect != "", list)
	check.MustTrue(t, strings.HasSuffix(table, "\r\n"), "%s: got %d rows, want %d", list, len(rows), len(items)+1)
	for i, item := range items {
		fields := json.NewDecoder(strings.NewReader(item))
		fields.UseNumber()
		var want map[string]any
		check.OK(t, fields.Decode(&want))
		if price, ok := want["price"].(string); ok {
			var digits, period string
			check.Try(fmt.Sscanf(price, "%s €/%s", &digits, &period)).OK(t)
			amount := check.Try(strconv.ParseFloat(strings.Replace(digits, ",", ".", 1), 64)).OK(t)
			want["price_amount"] = json.Number(fmt.Sprint(amount))
			want["price_currency"] = "EUR"
			want["billing_period"] = map[string]string{"mois": "month", "an": "year", "poste": "seat_month", "requête": "use", "heure": "hour"}[period]
		}
		for column, name := range rows[0] {
			expected := ""
			switch value := want[name].(type) {
			case json.Number:
				if expected = value.String(); excelFR {
					expected = strings.Replace(expected, ".", ",", 1)
				}
			case string:
				expected = strings.ReplaceAll(value, "\r\n", "\n") // the CSV reader does the same
				if value != "" && strings.Contains("=+-@\t\r", value[:1]) {
					expected = "'" + expected
				}
			}
			check.Must(t, rows[i+1][column], expected, "%s: %d %s", list, i, name)
		}
		check.Must(t, len(rows[0]), len(want), "%s: columns", list)
	}
}

// A download has exactly the items of all pages.
func TestBulkEqualsPages(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		for seed := range uint64(2) {
			publishFeed(t, s, responses, feedtest.Synthetic(t, synth.Options{Tools: 450, Seed: 7 + seed}))
			for _, list := range bulkLists {
				items := itemsOf(t, handler, list)
				total := strconv.Itoa(len(items))
				got := get(handler, list+"format=ndjson")
				check.Equal(t, got.Code, 200, "%s, %d bytes and %v", list, got.Body.Len(), got.Header())
				check.Equal(t, got.Body.String(), ndjson(items), "%s, %d bytes and %v", list, got.Body.Len(), got.Header())
				check.Equal(t, got.Header().Get("X-Total-Count"), total, "%s, %d bytes and %v", list, got.Body.Len(), got.Header())
				atPath := get(handler, strings.Replace(list, "?", ".ndjson?", 1))
				if atPath.Code != 200 || atPath.Body.String() != got.Body.String() || atPath.Header().Get("ETag") != got.Header().Get("ETag") {
					t.Errorf("%s at its own path: got %d, %d bytes and %v, want the same as with format=", list, atPath.Code, atPath.Body.Len(), atPath.Header())
				}
				for _, dialect := range []string{"", "&dialect=excel", "&dialect=excel-fr"} {
					got := get(handler, list+"format=csv"+dialect)
					check.Equal(t, got.Code, 200, "%s%s: %v", list, dialect, got.Header())
					check.Equal(t, got.Header().Get("X-Total-Count"), total, "%s%s: %v", list, dialect, got.Header())
					checkCSV(t, list, got.Body.String(), dialect, items)
				}
			}
		}
	})
}

func TestBulkHeaders(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		tags := map[string]string{}
		for target, want := range map[string]string{
			"/api/v1/tools?format=csv":                    `text/csv; charset=utf-8; header=present attachment; filename="tools-8.csv" 48 s-maxage=3600, stale-while-revalidate=86400`,
			"/api/v1/tools?format=csv&dialect=excel-fr":   `text/csv; charset=utf-8; header=present attachment; filename="tools-8.csv" 48 s-maxage=3600, stale-while-revalidate=86400`,
			"/api/v1/tools?format=ndjson":                 `application/x-ndjson  48 s-maxage=3600, stale-while-revalidate=86400`,
			"/api/v1/tools?format=ndjson&as_of=1":         `application/x-ndjson  42 private, max-age=31536000, immutable`,
			"/api/v1/categories?format=csv&as_of=3":       `text/csv; charset=utf-8; header=present attachment; filename="categories-3.csv" 8 private, max-age=31536000, immutable`,
			"/api/v1/pricing?as_of=2026-05-30&format=csv": `text/csv; charset=utf-8; header=present attachment; filename="pricing-3.csv" 41 s-maxage=3600, stale-while-revalidate=86400`,
			"/api/v1/pricing.csv?as_of=2026-06-30":        `text/csv; charset=utf-8; header=present attachment; filename="pricing-4.csv" 42 s-maxage=3600, stale-while-revalidate=86400`,
			"/api/v1/cimetiere.ndjson":                    `application/x-ndjson  10 s-maxage=3600, stale-while-revalidate=86400`,
		} {
			got := get(handler, target)
			header := got.Header()
			check.Equal(t, header.Get("Cache-Status"), "palmares; fwd=bypass", "%s: Cache-Status", target)
			shown := strings.Join([]string{header.Get("Content-Type"), header.Get("Content-Disposition"), header.Get("X-Total-Count"), header.Get("Cache-Control")}, " ")
			check.True(t, got.Code == 200 && shown == want, "%s: got %d %s, want %s", target, got.Code, shown, want)
			tag := header.Get("ETag")
			other, taken := tags[tag]
			check.Equal(t, taken, false, "%s: the ETag %s of %s", target, tag, other)
			check.True(t, tag != "", "%s: got the ETag %s of %s, want a unique one", target, tag, other)
			tags[tag] = target
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				again := serve(handler, request(method, target, "If-None-Match", tag))
				if again.Code != 304 || again.Body.Len() > 0 || again.Header().Get("ETag") != tag || again.Header().Get("X-Total-Count") == "" || again.Header().Get("Cache-Status") != "palmares; hit" {
					t.Errorf("%s %s with its ETag: got %d %v, want 304", method, target, again.Code, again.Header())
				}
			}
			head := serve(handler, request(http.MethodHead, target))
			check.Equal(t, head.Code, 200, "HEAD %s: %d", target, head.Body.Len())
			check.Equal(t, head.Body.Len(), 0, "HEAD %s", target)
			check.Equal(t, head.Header().Get("ETag"), tag, "HEAD %s: %d", target, head.Body.Len())
			// When the quota is used up, a matching ETag gets 304, any other an error, and
			// nothing is read.
			r := request(http.MethodGet, target, "If-None-Match", tag)
			check.Equal(t, serve(handler, r.WithContext(cache.WithCachedOnly(r.Context()))).Code, 304, "%s from the cache", target)
			r = request(http.MethodGet, target, "If-None-Match", `"other"`)
			check.Equal(t, serve(handler, r.WithContext(cache.WithCachedOnly(r.Context()))).Code, 404, "%s from the cache with another ETag", target)
		}
		for target, want := range map[string]string{
			"/api/v1/pricing.csv?category=code&as_of=2026-05-30": "https://palmares.example/api/v1/pricing.csv?category=code&as_of=3",
			"/api/v1/pricing?format=csv&as_of=2026-05-30":        "https://palmares.example/api/v1/pricing.csv?as_of=3",
		} {
			check.Equal(t, get(handler, target).Header().Get("Content-Location"), want, "%s: Content-Location", target)
		}
		got := get(handler, "/api/v1/tools?format=csv", "If-None-Match", get(handler, "/api/v1/tools").Header().Get("ETag"))
		check.Equal(t, got.Code, 200, "the ETag of another format")
	})
}

// The ETag depends on the release and on the version of the program.
func TestBulkETags(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		var tags []string
		for _, date := range []string{"2026-11-01", "2026-11-02"} {
			publishFeed(t, s, responses, feedtest.Catalog(date, feedtest.Tool("a")))
			tags = append(tags, get(handler, "/api/v1/tools?format=csv").Header().Get("ETag"))
		}
		for _, version := range []string{config.Version, "2"} {
			changed := config
			changed.Version = version
			log := slog.New(slog.DiscardHandler)
			other := check.Try(rest.NewHandler(changed, graphtest.New(graph.Config{Catalog: s, Log: log}), cache.New(1<<20, nil, log))).OK(t)
			tags = append(tags, get(other, "/api/v1/tools?format=csv").Header().Get("ETag"))
		}
		check.True(t, tags[0] != tags[1], "got ETags %v, want a new one for each release and version, and no other", tags)
		check.Equal(t, tags[1], tags[2])
		check.True(t, tags[2] != tags[3], "got ETags %v, want a new one for each release and version, and no other", tags)
	})
}

func TestBulkErrors(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for query, want := range map[string]string{
			"tools?format=xml":                       `format must be one of csv, ndjson (got "xml").`,
			"categories?format=":                     `format must be one of csv, ndjson (got "").`,
			"tools?format=csv&page=1":                "page is not available for downloads, which return the whole list.",
			"cimetiere?limit=50&format=ndjson":       "limit is not available for downloads, which return the whole list.",
			"tools.csv?page=1":                       "page is not available for downloads, which return the whole list.",
			"cimetiere.ndjson?limit=50":              "limit is not available for downloads, which return the whole list.",
			"tools.csv?limit=x":                      `limit must be an integer from 1 to 200 (got "x").`,
			"tools?format=csv&dialect=excel-de":      `dialect must be one of excel, excel-fr (got "excel-de").`,
			"tools?dialect=excel-fr":                 "dialect requires CSV (the extension .csv or format=csv).",
			"pricing?format=ndjson&dialect=excel-fr": "dialect requires CSV (the extension .csv or format=csv).",
			"pricing.ndjson?dialect=excel-fr":        "dialect requires CSV (the extension .csv or format=csv).",
			"tools.csv?format=ndjson":                `format must be one of csv (got "ndjson").`,
		} {
			wantError(t, query, get(handler, "/api/v1/"+query), 400, want)
		}
		for _, path := range []string{"/api/v1/tools?format=csv", "/api/v1/tools.csv", "/api/v1/categories.ndjson"} {
			r := request(http.MethodGet, path)
			got := serve(handler, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Anonymous})))
			wantError(t, path+" without a key", got, 401, "Downloads require an API key. Create one at https://palmares.example/account.")
		}
		for _, path := range []string{"tools.xml", "tools.CSV", "tools.csv/", "tools/.csv", "tools.csv/plume", "stats.csv", "changes.ndjson", "tools.", ".csv"} {
			check.Equal(t, get(handler, "/api/v1/"+path).Code, 404, path)
		}
		got := serve(handler, request(http.MethodPost, "/api/v1/tools.csv"))
		wantError(t, "POST", got, 405, "The method POST is not allowed; use GET or HEAD.")
		wantError(t, "encoding", get(handler, "/api/v1/tools?format=csv", "Accept-Encoding", "identity;q=0"), 406,
			"Accept-Encoding allows none of the encodings that are available: identity, gzip, br and zstd.")
		if got := get(handler, "/api/v1/stats?format=csv"); got.Code != 200 || got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("stats: got %d %v, want JSON, because the path has no formats", got.Code, got.Header())
		}
	})
}

func TestBulkEncodings(t *testing.T) {
	handler := onSQLite(t)
	want := get(handler, "/api/v1/tools?format=ndjson").Body.String()
	tags := map[string]bool{}
	for encoding, decode := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		got := get(handler, "/api/v1/tools?format=ndjson", "Accept-Encoding", encoding)
		decoder := check.Try(decode(got.Body)).OK(t)
		body := check.Try(io.ReadAll(decoder)).OK(t)
		check.Equal(t, string(body), want)
		check.Equal(t, got.Header().Get("Content-Encoding"), encoding)
		tags[got.Header().Get("ETag")] = true
	}
	check.Equal(t, len(tags), 3, "ETags")
}

// hookedRecorder calls a function before the first write of a body.
type hookedRecorder struct {
	*httptest.ResponseRecorder
	once    sync.Once
	before  func()
	largest int
	first   int // bytes of the first write
}

func (w *hookedRecorder) Write(p []byte) (int, error) {
	w.once.Do(func() { w.before(); w.first = len(p) })
	w.largest = max(w.largest, len(p))
	return w.ResponseRecorder.Write(p)
}

func recordWith(before func()) *hookedRecorder {
	return &hookedRecorder{ResponseRecorder: httptest.NewRecorder(), before: before}
}

// A download searches its list once for its headers and once for its body, not for each
// page.
func TestBulkSearchesOnce(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	handler, responses := handlerOver(t, s)
	publishFeed(t, s, responses, feedtest.Synthetic(t, synth.Options{Tools: 1_500, Seed: 3}))
	allocated := func(path string) int64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		check.Must(t, get(handler, path).Code, 200, path)
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	total, _ := strconv.Atoi(get(handler, "/api/v1/tools?search=e").Header().Get("X-Total-Count"))
	check.MustTrue(t, total >= 1_000, "got %d tools, want five pages or more", total)
	search := allocated("/api/v1/tools?search=e&limit=1") - allocated("/api/v1/tools?limit=1")
	more := allocated("/api/v1/tools?format=csv&search=e") - allocated("/api/v1/tools?format=csv")
	check.True(t, search >= 10_000 && more <= 4*search, "got %d more bytes allocated for a download with a search, and %d for a search, want two searches", more, search)
}

// Encoders collect megabytes before they write a block. The start of a download
// is sent without waiting for that.
func TestBulkStartsAtOnce(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	handler, responses := handlerOver(t, s)
	publishFeed(t, s, responses, feedtest.Synthetic(t, synth.Options{Tools: 1_500, Seed: 1}))
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		got := recordWith(func() {})
		handler.ServeHTTP(got, request(http.MethodGet, "/api/v1/tools?format=ndjson", "Accept-Encoding", encoding))
		check.True(t, got.Code == 200 && got.first != 0 && got.first <= 16<<10, "%s: got %d with %d bytes at the start, want those of the first items alone", encoding, got.Code, got.first)
	}
}

// A download that started before a release was published stays on its release.
func TestBulkUsesOneRelease(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		publishFeed(t, s, responses, feedtest.Synthetic(t, synth.Options{Tools: 900, Seed: 1}))
		want := ndjson(itemsOf(t, handler, "/api/v1/tools?"))
		got := recordWith(func() { publishFeed(t, s, responses, feedtest.Catalog("2026-12-01", feedtest.Tool("only"))) })
		handler.ServeHTTP(got, request(http.MethodGet, "/api/v1/tools?format=ndjson"))
		if got.Body.String() != want || got.Header().Get("X-Service-Release") != "1" {
			t.Errorf("got %d bytes of release %s, want %d of release 1", got.Body.Len(), got.Header().Get("X-Service-Release"), len(want))
		}
		check.True(t, got.largest <= 32<<10, "got a chunk of %d bytes, want at most 32 KiB", got.largest)
		after := get(handler, "/api/v1/tools?format=ndjson")
		check.Equal(t, after.Header().Get("X-Total-Count"), "1", "afterwards: %v", after.Header())
	})
}

// After a backup with another release of the same number is restored, a download that
// has started ends early, and no other starts with headers of the lost release.
func TestBulkOfReplacedRelease(t *testing.T) {
	catalog := &struct{ *store.Store }{testkit.Open(t, testkit.SQLite(t))}
	handler, responses := handlerOver(t, catalog)
	publishFeed(t, catalog.Store, responses, feedtest.Synthetic(t, synth.Options{Tools: 900, Seed: 1}))
	restored := testkit.Open(t, testkit.SQLite(t))
	publishFeed(t, restored, responses, feedtest.Synthetic(t, synth.Options{Tools: 900, Seed: 2}))
	got := recordWith(func() { catalog.Store = restored })
	caught := func() (caught any) {
		defer func() { caught = recover() }()
		handler.ServeHTTP(got, request(http.MethodGet, "/api/v1/tools?format=ndjson"))
		return nil
	}()
	check.Equal[any](t, caught, http.ErrAbortHandler, got.Body.Len())
	wantError(t, "before the cache notices", get(handler, "/api/v1/tools?format=ndjson"), 503, "The catalog was replaced by another one. Try again.")
	responses.Restart(1)
	want := ndjson(itemsOf(t, handler, "/api/v1/tools?"))
	after := get(handler, "/api/v1/tools?format=ndjson")
	check.Equal(t, after.Code, 200, "afterwards: %d", after.Body.Len())
	check.Equal(t, after.Body.String(), want, "afterwards: %d", after.Body.Len())
}

func TestBulkConcurrency(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		as := func(account int, method string, headers ...string) *http.Request {
			r := request(method, "/api/v1/tools?format=ndjson", headers...)
			return r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Pro, Account: account}))
		}
		tag := serve(handler, as(1, http.MethodGet)).Header().Get("ETag")
		started, finish := make(chan struct{}), make(chan struct{})
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				got := recordWith(func() { started <- struct{}{}; <-finish })
				handler.ServeHTTP(got, as(1, http.MethodGet))
				check.Equal(t, got.Code, 200, got.Body.Len())
				check.True(t, got.Body.Len() != 0, "got %d and %d bytes, want a list", got.Code, got.Body.Len())
			})
			<-started
		}
		third := serve(handler, as(1, http.MethodGet))
		wantError(t, "a third download", third, 429, "Too many downloads: at most 2 may run at the same time. Try again when one has finished.")
		for name, want := range map[string]string{
			"Retry-After": "5", "RateLimit": `"downloads";r=0;t=5`, "RateLimit-Policy": `"downloads";q=2;qu="concurrent-requests"`, "Vary": "Authorization, Accept-Encoding",
		} {
			check.Equal(t, third.Header().Get(name), want, name)
		}
		for what, c := range map[string]struct {
			r    *http.Request
			want int
		}{
			"another account": {as(2, http.MethodGet), 200}, "HEAD": {as(1, http.MethodHead), 200}, "304": {as(1, http.MethodGet, "If-None-Match", tag), 304},
		} {
			check.Equal(t, serve(handler, c.r).Code, c.want, what)
		}
		for account := 2; account <= 50; account++ { // 100 in all
			for range 2 {
				running.Go(func() {
					handler.ServeHTTP(recordWith(func() { started <- struct{}{}; <-finish }), as(account, http.MethodGet))
				})
				<-started
			}
		}
		wantError(t, "one more account", serve(handler, as(101, http.MethodGet)), 429, "Too many downloads are running on the server. Try again in a few seconds.")
		close(finish)
		running.Wait()
		for _, account := range []int{1, 101} {
			check.Equal(t, serve(handler, as(account, http.MethodGet)).Code, 200, "account %d afterwards", account)
		}
	})
}

// pipeListener accepts connections without any buffer, so that a client that
// does not read blocks the server at once.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	if conn, open := <-l.conns; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A client that stops reading is dropped, and its download ends.
func TestBulkAbandoned(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		publishFeed(t, s, responses, feedtest.Synthetic(t, synth.Options{Tools: 450, Seed: 1}))
		handler.SetSendTime(50 * time.Millisecond)
		ended := make(chan any, 1)
		listener := pipeListener{make(chan net.Conn)}
		server := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				caught := recover()
				ended <- caught
				panic(caught)
			}()
			handler.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Developer})))
		})}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { close(listener.conns); _ = server.Close() })
		client, side := net.Pipe()
		defer client.Close()
		listener.conns <- side
		fmt.Fprint(client, "GET /api/v1/tools?format=csv HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := io.ReadFull(client, make([]byte, 100)); err != nil { // it has started
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), wait.Limit)
		defer stop()
		select {
		case caught := <-ended:
			check.Equal[any](t, caught, http.ErrAbortHandler)
		case <-ctx.Done():
			t.Fatal("got a download that does not end, want it dropped")
		}
		for range 2 { // its slot is free again
			check.Equal(t, get(handler, "/api/v1/categories?format=csv").Code, 200, "afterwards")
		}
	})
}

// Before the first import, downloads are empty.
func TestBulkWithoutCatalog(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		handler, _ := handlerOver(t, s)
		for target, want := range map[string]string{
			"/api/v1/tools?format=ndjson":    "",
			"/api/v1/categories?format=csv":  "slug,label,tool_count,avg_score\r\n",
			"/api/v1/cimetiere?format=csv":   "slug,name,reason,retired_at,note\r\n",
			"/api/v1/comparatifs?format=csv": "slug,title,winner,updated_at,canonical_url\r\n",
			"/api/v1/pricing?format=csv":     "slug,name,pricing,price,price_amount,price_currency,billing_period\r\n",
		} {
			got := get(handler, target)
			if got.Code != 200 || got.Body.String() != want || got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("X-Total-Count") != "0" {
				t.Errorf("%s: got %d %q %v, want %q", target, got.Code, got.Body, got.Header(), want)
			}
		}
	})
}

// cell is a cell of a spreadsheet.
type cell struct {
	Kind    string   `xml:"value-type,attr"` // string, float, date, or "" if it is empty
	Value   string   `xml:"value,attr"`      // of a number
	Date    string   `xml:"date-value,attr"`
	Formula string   `xml:"formula,attr"`
	Repeats int      `xml:"number-columns-repeated,attr"`
	Lines   []markup `xml:"p"`
}

// markup is a text in which some spaces and tabs are elements.
type markup struct {
	Text string `xml:",innerxml"`
}

var spaceElement = regexp.MustCompile(`<text:s(?: text:c="(\d+)")?/>`)

// text returns the text of a cell as a reader sees it.
func (c cell) text() string {
	var lines []string
	for _, line := range c.Lines {
		text := spaceElement.ReplaceAllStringFunc(strings.ReplaceAll(line.Text, "<text:tab/>", "\t"), func(element string) string {
			n, _ := strconv.Atoi(spaceElement.FindStringSubmatch(element)[1])
			return strings.Repeat(" ", max(1, n))
		})
		lines = append(lines, html.UnescapeString(text))
	}
	return strings.Join(lines, "\n")
}

// maxColumns is more than any list has. The last cell of a row is repeated to the
// edge of the sheet.
const maxColumns = 100

// openInLibreOffice opens a table with the options of an import dialog, and
// returns the cells of each row.
func openInLibreOffice(t *testing.T, table []byte, options string) (rows [][]cell) {
	t.Helper()
	program, dir := testkit.LibreOffice.Ensure(t), t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(dir, "table.csv"), table, 0o600))
	// A separate profile: LibreOffice cannot run twice with the same one.
	cmd := exec.CommandContext(t.Context(), program, "-env:UserInstallation=file://"+filepath.Join(dir, "profile"),
		"--headless", "--infilter=CSV:"+options, "--convert-to", "fods", "--outdir", dir, filepath.Join(dir, "table.csv"))
	out, err := cmd.CombinedOutput()
	check.OK(t, err, "LibreOffice %s", string(out))
	text := check.Try(os.ReadFile(filepath.Join(dir, "table.fods"))).OK(t, "LibreOffice wrote no file: %s", string(out))
	var sheet struct {
		Rows []struct {
			Cells []cell `xml:"table-cell"`
		} `xml:"body>spreadsheet>table>table-row"`
	}
	check.OK(t, xml.Unmarshal(text, &sheet))
	for _, row := range sheet.Rows {
		var cells []cell
		for _, c := range row.Cells {
			cells = append(cells, slices.Repeat([]cell{c}, min(max(1, c.Repeats), maxColumns))...)
		}
		rows = append(rows, cells)
	}
	return rows
}

// LibreOffice shows the same values as the API: numbers are numbers, strings are
// strings, and no string is run as a formula.
func TestCSVWithLibreOffice(t *testing.T) {
	names := []string{
		"=1+1", "+1+1", "-1+1", "@SUM(1;1)", "\t=1+1", `=HYPERLINK("https://example.org";"x")`, "a;b,c", `a "quoted" name`, "l’été à Noël, œuvre",
		"two\nlines", `"=1+1"`, "'quoted'", "emoji 😀 €", " spaces ",
	}
	// The options are separator, quote, UTF-8, first line, formats, language, quoted
	// fields as text, detect special numbers, and last, evaluate formulas.
	forms := []struct{ name, query, options string }{
		{"standard", "format=csv", "44,34,76,1,,1033,false,true,false,false,false,0,true"},
		{"excel", "format=csv&dialect=excel", "44,34,76,1,,1033,false,true,false,false,false,0,true"},
		{"excel-fr", "format=csv&dialect=excel-fr", "59,34,76,1,,1036,false,true,false,false,false,0,true"},
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		var tools []any
		for i, name := range names {
			tools = append(tools, feedtest.Tool("tool-"+strconv.Itoa(i), func(t *record.Tool) { t.Name, t.Tagline = name, name+" …" }))
		}
		publishFeed(t, s, responses, feedtest.Catalog("2026-11-01", tools...))
		items := itemsOf(t, handler, "/api/v1/tools?")
		for _, form := range forms {
			rows := openInLibreOffice(t, get(handler, "/api/v1/tools?"+form.query).Body.Bytes(), form.options)
			check.MustTrue(t, len(rows) >= len(items)+1, "%s: got %d rows, want %d", form.name, len(rows), len(items)+1)
			for i, item := range items {
				var want map[string]any
				check.OK(t, json.Unmarshal([]byte(item), &want))
				want["price_amount"], want["price_currency"], want["billing_period"] = 20.0, "EUR", "month"
				for column, head := range rows[0][:len(want)] {
					got := rows[i+1][column]
					switch value := want[head.text()].(type) {
					case nil:
						check.Equal(t, got.Kind+got.Formula+got.text(), "", "%s, row %d: %s", form.name, i+1, head.text())
					case float64:
						number, err := strconv.ParseFloat(got.Value, 64)
						check.True(t, got.Kind == "float" && err == nil && number == value, "%s, row %d: got %+v as %s, want the number %v", form.name, i+1, got, head.text(), value)
					case string:
						if strings.Contains("=+-@\t", value[:1]) {
							value = "'" + value
						}
						check.True(t, got.Formula == "" && (got.text() == value || got.Date == value) && got.Kind != "float", "%s, row %d: got %+v as %s, want the text %q", form.name, i+1, got, head.text(), value)
					}
				}
			}
		}
	})
}
