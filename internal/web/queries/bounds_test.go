package queries

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
	"palmares/internal/web/visitor"
)

// The most that the chart and the table of a page cost, whatever the result is.
const (
	mostMarks     = 12_000   // in all drawings for a page
	mostAllocated = 64 << 20 // bytes, besides a multiple of the result
	mostCells     = 10_000
	mostCell      = 1_000 // bytes
)

// drawAll makes everything that a page and the files of a chart show of a result. It
// returns the marks of all drawings.
func drawAll(t testing.TB, body string, f saved.Chart) (shown *table, drawn *chart.Chart, marks int) {
	t.Helper()
	shown = tableOf(t, body)
	drawn = newChart(lang.English, shown, f, november)
	if drawn != nil {
		html, err := drawn.Draw(t.Context())
		check.OK(t, err)
		for _, shape := range []string{"path", "circle", "rect", "text"} {
			marks += strings.Count(string(html), "</"+shape+">")
		}
		for extension := range chart.ContentTypes {
			if _, err := drawn.File(t.Context(), extension, "Source: palmares"); err != nil {
				t.Fatal(err)
			}
		}
	}
	shown.addWords(lang.English, november)
	return shown, drawn, marks
}

// allocated returns the bytes that a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func checkCost(t *testing.T, body string, f saved.Chart) (shown *table, drawn *chart.Chart) {
	t.Helper()
	marks := 0
	used := allocated(func() { shown, drawn, marks = drawAll(t, body, f) })
	if limit := uint64(mostAllocated + 40*len(body)); used > limit {
		t.Errorf("got %d bytes allocated for a result of %d, want at most %d: %.200s", used, len(body), limit, body)
	}
	if marks > mostMarks {
		t.Errorf("got %d marks, want at most %d: %.200s", marks, mostMarks, body)
	}
	cells, longest := 0, 0
	for _, r := range shown.Rows {
		cells += len(r)
		for _, c := range r {
			longest = max(longest, len(c.Text))
		}
	}
	if cells > mostCells || longest > mostCell+len("…") {
		t.Errorf("got %d cells of at most %d bytes, want %d of %d", cells, longest, mostCells, mostCell)
	}
	return shown, drawn
}

func rowsOf(count int, row func(i int) string) string {
	var all []string
	for i := range count {
		all = append(all, row(i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// Results that once took seconds are cheap, and those too large for a chart say so.
func TestLargeResults(t *testing.T) {
	long := func(size int) string {
		return `[` + strings.Repeat(`{"slug":"a-tool","name":"A tool","tagline":"does everything"},`, size/60) + `{}]`
	}
	columns := func(count int, value string) string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(value, i))
		}
		return strings.Join(all, ",")
	}
	day := func(i int) string { return fmt.Sprintf("%04d-%02d-%02d", 1990+i/336, i/28%12+1, i%28+1) }
	for name, c := range map[string]struct {
		body    string
		form    saved.Chart
		undrawn bool
	}{
		"lists as labels": {rowsOf(3, func(i int) string {
			return fmt.Sprintf(`{"score":%d,"alternatives":%s,"priceHistory":[%d]}`, i, long(600_000), i)
		}), saved.Chart{}, false},
		"long names":   {rowsOf(40, func(i int) string { return fmt.Sprintf(`{"name":"%d%s","n":%d}`, i, strings.Repeat("W", 50_000), i) }), saved.Chart{}, false},
		"many columns": {rowsOf(50, func(i int) string { return "{" + columns(150, fmt.Sprintf(`"c%%d":"%d"`, i%7)) + `,"n":1}` }), saved.Chart{}, true},
		"many pairs":   {rowsOf(400, func(i int) string { return "{" + columns(25, fmt.Sprintf(`"c%%d":"x%d"`, i%199)) + `,"n":1}` }), saved.Chart{}, true},
		"many metrics": {rowsOf(500, func(i int) string { return fmt.Sprintf(`{"metric":"m%d","start":"2020-01","value":%d}`, i, i) }), saved.Chart{Kind: "line", X: "start", Y: "value", Series: "metric"}, true},
		"many series":  {rowsOf(500, func(i int) string { return fmt.Sprintf(`{"k":"m%d","start":"%s","value":%d}`, i, day(i), i) }), saved.Chart{Kind: "line", X: "start", Y: "value", Series: "k"}, true},
		"many periods": {rowsOf(500, func(i int) string {
			return fmt.Sprintf(`{"k":"k%d","month":"%d-%02d","count":%d}`, i%12, 1980+i/12, i%12+1, i)
		}), saved.Chart{Kind: "line", X: "month", Y: "count", Series: "k"}, true},
		"all of time": {`[{"at":"0001-01-01","n":1},{"at":"9999-12-31","n":2},{"at":"2026","n":3}]`, saved.Chart{}, false},
		"wide rows":   {"[" + strings.Repeat(`{`+columns(300, `"w%d":1`)+`},`, 5_000) + `{}]`, saved.Chart{}, true},
		"many rows":   {"[" + strings.Repeat(`{"k":"a","n":1},`, 120_000) + `{"k":"b","n":2}]`, saved.Chart{}, false},
	} {
		shown, drawn := checkCost(t, c.body, c.form)
		if shown.Undrawn != c.undrawn || c.undrawn && drawn != nil {
			t.Errorf("%s: got too large for a chart %v and chart %s, want %v", name, shown.Undrawn, described(drawn), c.undrawn)
		}
		body, err := templates.Render("embed", page.Content{Data: &queryPage{View: &saved.View{}, Table: shown, Chart: drawn}})
		if says := strings.Contains(string(body), "too large for a chart"); err != nil || says != c.undrawn {
			t.Errorf("%s: got a page that says so: %v (%v), want %v", name, says, err, c.undrawn)
		}
	}
}

// A page that nobody waits for any longer is not drawn.
func TestDrawingStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	drawn := newChart(lang.English, tableOf(t, `[{"k":"a","n":1},{"k":"b","n":2}]`), saved.Chart{}, november)
	cancel()
	if _, err := saved.NewGrid(ctx, []string{"a"}, eachOf([][]jsontext.Value{{jsontext.Value("1")}})); err == nil {
		t.Error("got a table, want the error of the context")
	}
	if html, err := drawn.Draw(ctx); err == nil || html != template.HTML("") {
		t.Errorf("got %q, want the error of the context", html)
	}
	if _, err := drawn.File(ctx, "png", ""); err == nil {
		t.Error("got a PNG, want the error of the context")
	}
}

// The query, the table, the chart and the page are all on the budget of a visitor, which is
// released after each page. Pages of busy visitors are refused, in frames of other sites without
// our layout.
func TestPagesAreRenderedOnBudget(t *testing.T) {
	pages := newPages(t, saved.BuiltIn{Name: "scores", Title: "Scores", Description: "By category.", Text: "{categories{label avgScore}}"})
	synctest.Test(t, func(t *testing.T) {
		pages.Visitors = visitor.NewLimiter(nil)
		for path, want := range map[string]string{"/q/palmares/scores": "<svg", "/q/palmares/scores/embed": "<svg", "/q": "scores"} {
			w := pages.get(path, "Accept", "text/html")
			check.Equal(t, w.Code, http.StatusOK, path)
			check.Contains(t, w.Body.String(), want, path)
		}
		for range 2 {
			done, err := pages.Visitors.Charge(httptest.NewRequest(http.MethodGet, "/", nil))
			check.OK(t, err)
			defer done()
		}
		for path, hasLayout := range map[string]bool{"/q/palmares/scores": true, "/q/palmares/scores/embed": false, "/q": true} {
			w := pages.get(path, "Accept", "text/html")
			if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "<nav") != hasLayout {
				t.Errorf("%s: got %d %v %.200s, want a refused page", path, w.Code, w.Header(), w.Body)
			}
		}
	})
}

// Public pages are cached unless somebody identifies themselves, and all are compressed.
func TestCachingOfQueryPages(t *testing.T) {
	pages := newPages(t, saved.BuiltIn{Name: "scores", Title: "Scores", Description: "By category.", Text: "{categories{label avgScore}}"})
	for header, want := range map[string]string{"": "public, max-age=0, s-maxage=60", "Authorization": "private, no-cache", "Cookie": "private, no-cache"} {
		w := pages.get("/q/palmares/scores", "Accept", "text/html", "Accept-Encoding", "gzip", header, "a=b")
		if got := w.Header(); w.Code != http.StatusOK || got.Get("Cache-Control") != want || got.Get("Content-Encoding") != "gzip" || !strings.Contains(got.Get("Vary"), "Accept-Language") {
			t.Errorf("with %q: got %d %v, want %s and gzip", header, w.Code, got, want)
		}
	}
}

// Slugs are shown as names, those of retired tools, too.
func TestNamesOfRetiredTools(t *testing.T) {
	pages := newPages(t, saved.BuiltIn{Name: "gone", Title: "Gone", Description: "Retired tools.", Text: "{retiredTools(limit: 50){items{tool: slug}}}"})
	got := pages.get("/q/palmares/gone", "Accept", "text/html")
	check.Equal(t, got.Code, http.StatusOK)
	check.Contains(t, got.Body.String(), "<td>Grenier Commun</td>")
}

// While the database fails, the gallery says so, and visitors can try again.
func TestGalleryWhileDatabaseFails(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	queries, err := saved.New(saved.Config{Store: s, Executor: graphtest.New(graph.Config{Catalog: s})})
	check.OK(t, err)
	_, err = s.Write.ExecContext(t.Context(), "ALTER TABLE saved_queries RENAME TO hidden")
	check.OK(t, err)
	pages, w := &Pages{Service: page.Service{Log: slog.New(slog.DiscardHandler)}, Queries: queries}, httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/q?search=a", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `<a class="button" href="/en/q?search=a">Try again</a>`) {
		t.Errorf("got %d %v %s, want 503 and a link to try again", w.Code, w.Header(), w.Body)
	}
}

// result returns a random result: rows of a random shape whose values repeat, are long,
// extreme, lists, objects, dates or null.
func result(random *rand.Rand) string {
	names := []string{"name", "slug", "key", "metric", "start", "month", "value", "count", "score", "a.b", "k", "n", "price"}
	var value func(depth int) string
	value = func(depth int) string {
		switch random.IntN(10) {
		case 0:
			return "null"
		case 1, 2:
			return fmt.Sprint(random.IntN(1_000))
		case 3:
			return fmt.Sprintf("%.3fe%d", random.Float64()-0.5, random.IntN(640)-320)
		case 4:
			return fmt.Sprintf(`"%04d-%02d"`, random.IntN(10_000), 1+random.IntN(12))
		case 5:
			return fmt.Sprintf(`"%04d-%02d-%02dT00:00:00Z"`, random.IntN(10_000), 1+random.IntN(12), 1+random.IntN(28))
		case 6:
			return `"` + strings.Repeat([]string{"W", "é ", "x-", "\u202f"}[random.IntN(4)], random.IntN(3_000)) + `"`
		case 7:
			if depth < 3 {
				return rowsOf(random.IntN(30), func(int) string { return value(depth + 1) })
			}
		case 8:
			if depth < 3 {
				return fmt.Sprintf(`{"%s":%s,"z":%s}`, names[random.IntN(len(names))], value(depth+1), value(depth+1))
			}
		}
		return fmt.Sprintf(`"v%d"`, random.IntN(50))
	}
	columns := make([]string, 1+random.IntN(8))
	if random.IntN(5) == 0 {
		columns = make([]string, 1+random.IntN(200))
	}
	for i := range columns {
		columns[i] = fmt.Sprintf("%s%d", names[random.IntN(len(names))], i)
		if name := names[random.IntN(len(names))]; !slices.Contains(columns, name) {
			columns[i] = name
		}
	}
	kinds := make([]func() string, len(columns))
	for i := range kinds {
		switch random.IntN(4) {
		case 0:
			kinds[i] = func() string { return fmt.Sprint(random.IntN(100)) }
		case 1:
			kinds[i] = func() string {
				return fmt.Sprintf(`"%04d-%02d-%02d"`, 1+random.IntN(9_998), 1+random.IntN(12), 1+random.IntN(28))
			}
		case 2:
			kinds[i] = func() string { return fmt.Sprintf(`"v%d"`, random.IntN(600)) }
		default:
			kinds[i] = func() string { return value(0) }
		}
	}
	return rowsOf(random.IntN(1_000_000/(200*len(columns))), func(int) string {
		var members []string
		for i, name := range columns {
			members = append(members, fmt.Sprintf("%q:%s", name, kinds[i]()))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// FuzzDraw checks that the table and the chart of any result allocate a bounded amount of
// memory, and draw a bounded number of marks.
func FuzzDraw(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, "", "", "", "")
	}
	f.Add(uint64(3), "line", "start", "value", "metric")
	f.Add(uint64(4), "bar", "name", "score", "k")
	f.Add(uint64(5), "tiles", "", "", "")
	f.Fuzz(func(t *testing.T, seed uint64, kind, x, y, series string) {
		checkCost(t, result(rand.New(rand.NewPCG(seed, 0))), saved.Chart{Kind: kind, X: x, Y: y, Series: series})
	})
}
