package graph_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/cache"
	"palmares/internal/dev/testkit"
)

// cpuTime is the CPU time that the calling thread spends in do.
func cpuTime(t *testing.T, do func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID
		var spent syscall.Timespec
		if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&spent)), 0); failed != 0 {
			t.Fatal(failed)
		}
		return time.Duration(spent.Nano())
	}
	start := now()
	do()
	return now() - start
}

// repeated joins n numbered copies of a format.
func repeated(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// refusedDocuments are up to 100 kB long and made to be expensive to refuse.
func refusedDocuments() map[string]string {
	long := strings.Repeat("x", 190)
	return map[string]string{
		"fragments on unknown types":    "{feed {release}}" + repeated(440, "fragment F%d on "+long+" {x}"),
		"spreads of unknown types":      "{tools {items {" + repeated(400, "... on "+long+"%d {slug} ") + "}}}",
		"unknown fields":                "{tools {items {" + repeated(450, long+"%d ") + "}}}",
		"unknown arguments":             "{tools(" + repeated(450, long+"%d: 1 ") + ") {meta {total}}}",
		"unknown input fields":          "{tools(filter: {" + repeated(450, long+"%d: 1 ") + "}) {meta {total}}}",
		"unknown enum values":           "{tools(filter: {icps: [" + repeated(99, long+"%d ") + "]}) {meta {total}}}",
		"unknown directives":            "{feed {release " + repeated(45, "@"+long+"%d ") + "}}",
		"unknown variable types":        "query (" + repeated(450, "$v%d: "+long+" ") + ") {feed {release}}",
		"undefined variables":           "{tools {items {" + repeated(45, "a%d: comparisons(limit: $"+long+") {slug} ") + "}}}",
		"fields that conflict":          "{tools {items {" + strings.Repeat("slug:name ", 40) + strings.Repeat("slug ", 400) + "}}}",
		"nested fields that conflict":   "{tools {items {" + strings.Repeat("category {tools {slug}} ", 40) + strings.Repeat("category {tools {slug: name}} ", 40) + "}}}",
		"fragments that conflict":       "{tools {items {" + repeated(40, "...F%d ") + "}}}" + repeated(40, "fragment F%d on Tool {slug: name category {slug} ... {slug}}"),
		"fields that hardly conflict":   "{tools {items {" + repeated(2, "a%d: category {"+strings.Repeat("slug ", 25)+strings.Repeat("slug: label ", 24)+"} ") + "}}}",
		"fragments in circles":          "{feed {...F0}}" + repeated(400, "fragment F%[1]d on Feed {...F1 ...F2 ...F3 ...F%[1]d}"),
		"unused fragments":              "{feed {release}}" + repeated(490, "fragment F%d on Feed {release}"),
		"fragments in a circle":         "{feed {...F0}}" + repeated(400, "fragment F%d on Feed {release ...F0}"),
		"fragments that spread all":     "{tools {items {...F0}}}" + repeated(20, "fragment F%d on Tool {"+repeated(20, "...F%d ")+"}"),
		"list of numbers":               "{tools(filter: {categories: [" + strings.Repeat("1 ", 45_000) + "]}) {meta {total}}}",
		"lists in lists":                "{tools(filter: {categories: " + strings.Repeat("[", 1_900) + strings.Repeat("]", 1_900) + "}) {meta {total}}}",
		"open brackets":                 strings.Repeat("{a", 45_000),
		"one long string":               `{tools(filter: {search: "` + strings.Repeat("x", 99_000) + `"}) {nothing}}`,
		"one long comment":              "#" + strings.Repeat("x", 99_000),
		"many comments":                 strings.Repeat("#\n", 50_000),
		"one long name":                 "{" + strings.Repeat("x", 99_000) + "}",
		"block string with many lines":  `{tools(filter: {search: """` + strings.Repeat("  x\n", 20_000) + `"""}) {nothing}}`,
		"many operations":               repeated(700, "query Q%d {feed {release}} "),
		"many unnamed operations":       strings.Repeat("{feed {release}} ", 700),
		"many equally named operations": strings.Repeat("query Q {feed {release}} ", 600),
		"many variables, all unused":    "query (" + repeated(900, "$v%d: Int ") + ") {feed {release}}",
		"the same variable":             "query (" + strings.Repeat("$v: Int ", 900) + ") {feed {release}}",
		"escapes":                       `{tools(filter: {search: "` + strings.Repeat(`\u00e9`, 16_000) + `"}) {nothing}}`,
	}
}

// A document of up to 100 kB that is refused costs at most 20 ms of CPU time,
// and leaves nothing in the cache.
func TestRefusingIsCheap(t *testing.T) {
	const most = 20 * time.Millisecond
	responses := cache.New(64<<20, nil, slog.New(slog.DiscardHandler))
	e := graph.NewExecutor(graph.Config{
		Catalog: testkit.Open(t, testkit.SQLite(t)), Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Cache: responses,
	})
	slack := cpuSlack(t)
	for name, query := range refusedDocuments() {
		if len(query) > 100_000 {
			t.Fatalf("%s: has %d bytes, want at most 100,000", name, len(query))
		}
		var answer *graph.Answer
		least := time.Hour
		for range 3 { // the least is without the garbage collector's share
			least = min(least, cpuTime(t, func() { answer = execute(t, e, "", query) }))
		}
		if !answer.Refused() {
			t.Errorf("%s: got %.100s, want a refusal", name, answer.Data)
		}
		if least > most*slack {
			t.Errorf("%s: got %v of CPU time, want at most %v", name, least, most*slack)
		}
		t.Logf("%-32s %v", name, least)
	}
	if n := responses.Entries(); n != 0 {
		t.Errorf("got %d items in the cache, want none", n)
	}
}

// cpuSlack is how much slower this build is than an ordinary one: under the race
// detector, hashing and comparing takes several times as long.
func cpuSlack(t *testing.T) time.Duration {
	t.Helper()
	if raceEnabled {
		return 15
	}
	return 1
}

// Short documents with a misspelt name are helped with a suggestion.
func TestSuggestions(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	answer := execute(t, e, "", "{tools {items {sluq}}}")
	if len(answer.Errors) == 0 || !strings.Contains(answer.Errors[0].Message, `"slug"`) {
		t.Errorf("got %v, want a suggestion of slug", answer.Errors)
	}
}

// Requests over a limit of execution leave nothing in the cache; those that are
// executed leave a bounded weight, however hostile their documents are.
func TestCachedRequestsAreWeighed(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	const budget = 8 << 20
	responses := cache.New(budget, nil, slog.New(slog.DiscardHandler))
	responses.Publish(1)
	handler := graph.NewHandler(graph.NewExecutor(graph.Config{
		Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Cache: responses, Tools: func() int { return 5_000 },
	}), responses)
	costly := `{"query":"{tools(limit: 200) {items {comparisons {toolA {name comparisons {slug title winnerName}} toolB {name comparisons {slug title}}}}}}"}`
	if got := serve(handler, post(costly, "")); !strings.Contains(got.Body.String(), "QUERY_TOO_COMPLEX") {
		t.Fatalf("got %s, want a refusal", got.Body)
	}
	if n := responses.Entries(); n != 0 {
		t.Errorf("got %d items in the cache after a refusal, want none", n)
	}
	before := heap()
	for i := range 300 {
		// Some hundred lists of values that differ from request to request.
		query := fmt.Sprintf(`query Q%d($f: ToolFilter) {`, i) + repeated(40, `a%d: tools(limit: 1, filter: {categories: [`+strings.TrimSpace(strings.Repeat(`\"c\" `, 60))+`]}) {meta {total}} `) + `b: tools(limit: 1, filter: $f) {meta {total}}}`
		body := fmt.Sprintf(`{"query":"%s","variables":{"f":{"categories":[%s"x%d"]}}}`, query, strings.Repeat(`"c",`, 90), i)
		if got := serve(handler, post(body, "")); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), `"data"`) {
			t.Fatalf("got %d %.200s, want data", got.Code, got.Body)
		}
	}
	if w := responses.Weight(); w > budget*11/10 {
		t.Errorf("got %d bytes cached, want about %d", w, budget)
	}
	if grown := heap() - before; grown > 2*budget {
		t.Errorf("got %d more bytes on the heap, want at most %d", grown, 2*budget)
	}
}

// heap is how many bytes are alive.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held on to
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Deferred parts are not served, so that the schema does not offer them.
func TestNoDefer(t *testing.T) {
	onDemo(t, func(t *testing.T, e *graph.Executor) {
		if got := ask(t, e, "{__schema {directives {name}}}"); strings.Contains(got, "defer") {
			t.Errorf("got %s, want no @defer", got)
		}
		refusedWith(t, execute(t, e, "", "{tools {... @defer {items {slug}}}}"), "GRAPHQL_VALIDATION_FAILED", `Unknown directive "@defer".`)
	})
}
