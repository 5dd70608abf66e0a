// These limits on CPU time do not hold for instrumented code.
//go:build !race

package graph_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// maxRejectTime is the CPU time that rejecting a request may take. The attacks that
// it guards against take seconds or minutes.
const maxRejectTime = 100 * time.Millisecond

// doubled returns nested fragments, each spreading the next one twice.
func doubled(levels int) string {
	var doc strings.Builder
	doc.WriteString("{tools {items {...F0}}}")
	for i := range levels {
		fmt.Fprintf(&doc, " fragment F%d on Tool {...F%d ...F%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&doc, " fragment F%d on Tool {slug}", levels)
	return doc.String()
}

const tooMuchWork = "The document is too complex to validate. Select each field once, and nest fewer fragments."

// nested returns a selection within a number of others.
func nested(levels int, start, selection string) string {
	return strings.Repeat(start, levels) + selection + strings.Repeat("}", levels)
}

// chain returns fragments that spread each other, the last of which has a selection.
func chain(length int, selection string) string {
	var doc strings.Builder
	doc.WriteString("{tools {items {...F0}}}")
	for i := range length {
		fmt.Fprintf(&doc, " fragment F%d on Tool {...F%d}", i, i+1)
	}
	return doc.String() + fmt.Sprintf(" fragment F%d on Tool {%s}", length, selection)
}

func TestHostileDocuments(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	result := execute(t, e, "", chain(35, "slug"))
	check.Equal(t, len(result.Errors), 0, "a short chain of fragments: %v", result.Errors)
	deep := func(levels int) string {
		return `{tool(slug: "x") ` + strings.Repeat(`{category {tools `, levels/2) + `{slug}` + strings.Repeat("}}", levels/2) + "}"
	}
	for name, c := range map[string]struct{ query, code, message string }{
		"doubled fragments":             {doubled(25), "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"doubled fragments, fewer":      {doubled(11), "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"identical fields":              {"{tools {items {" + strings.Repeat("slug ", 3000) + "}}}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"aliases":                       {"{tools {items {" + aliases(400) + "}}}", "QUERY_TOO_COMPLEX", "The operation costs 20007, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"directives":                    {"{feed {release " + strings.Repeat("@include(if: true) ", 200) + "}}", "GRAPHQL_VALIDATION_FAILED", `The directive "@include" can only be used once at this location.`},
		"depth":                         {deep(14), "QUERY_TOO_COMPLEX", "The operation costs 1000000, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"repeated fields":               {"{tools {items {" + strings.Repeat("slug ", 200) + "}}}", "QUERY_TOO_COMPLEX", tooMuchWork},
		"inline fragments in a row":     {"{tools {items {" + nested(900, "...{", "slug ") + "}}}", "QUERY_TOO_COMPLEX", tooMuchWork},
		"a chain of fragments":          {chain(400, "slug"), "QUERY_TOO_COMPLEX", tooMuchWork},
		"cost":                          {"{tools(limit: 200) {items {comparisons {toolA {name comparisons {slug title winnerName}} toolB {name comparisons {slug title}}}}}}", "QUERY_TOO_COMPLEX", "The operation costs 112232, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"nested introspection":          {"{__schema {types {fields {type {fields {type {fields {type {fields {name}}}}}}}}}}", "GRAPHQL_VALIDATION_FAILED", "Maximum introspection depth exceeded"},
		"a cycle of fragments":          {"{feed {...A}} fragment A on Feed {...B} fragment B on Feed {...A}", "GRAPHQL_VALIDATION_FAILED", `Cannot spread fragment "A" within itself via "B".`},
		"no operation":                  {"fragment A on Feed {release}", "BAD_USER_INPUT", "The document has no operation."},
		"page 0":                        {"{tools(page: 0) {meta {total}}}", "BAD_USER_INPUT", "page must be an integer from 1 to 1000000 (got 0)."},
		"limit 201":                     {"{tools(limit: 201) {meta {total}}}", "BAD_USER_INPUT", "limit must be an integer from 1 to 200 (got 201)."},
		"first: -1":                     {"{toolConnection(first: -1) {totalCount}}", "BAD_USER_INPUT", "first must be an integer from 0 to 200 (got -1)."},
		"first and last":                {"{toolConnection(first: 1, last: 1) {totalCount}}", "BAD_USER_INPUT", "first and last cannot be used together."},
		"an invalid cursor":             {`{toolConnection(after: "%%%") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of another list":      {`{toolConnection(after: "` + cursorOf(`{"l":"comparisons","p":["2026-01-01","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of another order":     {`{toolConnection(after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of the reverse order": {`{toolConnection(sort: name_desc, after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of other types":       {`{toolConnection(before: "` + cursorOf(`{"l":"tools score_desc","p":[false,"8","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor from this list in the same sort order."},
		"a cursor with a NUL":           {`{toolConnection(sort: name_asc, before: "` + cursorOf(`{"l":"tools name_asc","p":["a","\u0000"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor from this list in the same sort order."},
		"NUL in a slug":                 {`{tool(slug: "a\u0000b") {slug}}`, "BAD_USER_INPUT", "slug must not contain NUL characters."},
		"a long search":                 {`{tools(filter: {search: "` + strings.Repeat("é", 201) + `"}) {meta {total}}}`, "BAD_USER_INPUT", "filter.search must have at most 200 characters."},
		"a date that does not exist":    {`{tools(filter: {updatedSince: "2026-02-30"}) {meta {total}}}`, "BAD_USER_INPUT", "A Date must be a valid date in the form YYYY-MM-DD."},
		"the year 0":                    {`{tools(filter: {updatedSince: "0000-01-01"}) {meta {total}}}`, "BAD_USER_INPUT", "A Date must be a valid date in the form YYYY-MM-DD."},
		"an unknown enum value":         {`{tools(sort: best) {meta {total}}}`, "GRAPHQL_VALIDATION_FAILED", "Value \"best\" does not exist in \"ToolSort\" enum. " + allowedSorts},
		"a deeply nested list":          {"{tools(filter: {categories: " + strings.Repeat("[", 200_000), "GRAPHQL_PARSE_FAILED", "exceeded maximum nesting depth of 1000"},
		"an unused fragment":            {"{__typename} fragment F on Tool {" + strings.Repeat("slug:name slug ", 900) + "}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"a long name":                   {"{" + strings.Repeat("x", 90_000) + "}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"a long argument":               {"{tools(" + strings.Repeat("x", 300) + ": 1) {meta {total}}}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"too many tokens":               {"{" + strings.Repeat("feed{release}", 2000) + "}", "GRAPHQL_PARSE_FAILED", "exceeded token limit of 4000"},
	} {
		t.Run(name, func(t *testing.T) {
			start := wait.CPU()
			result := execute(t, e, "", c.query)
			used := wait.CPU() - start
			check.True(t, used <= maxRejectTime, "got %v of CPU time, want at most %v", used, maxRejectTime)
			wantRejected(t, result, c.code, c.message)
		})
	}
}

// The response to an invalid document is short, however many errors it has.
func TestErrorsAreTruncated(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for name, query := range map[string]string{
		"fields that conflict": "{tools {items {" + strings.Repeat("slug:name ", 40) + strings.Repeat("slug ", 400) + "}}}",
		"unknown arguments":    "{feed {release(" + strings.Repeat("x:1 ", 500) + ")}}",
		"a long name":          "{" + strings.Repeat("x", 90_000) + "}",
	} {
		start := wait.CPU()
		result := execute(t, e, "", query)
		used := wait.CPU() - start
		text, err := json.Marshal(result.Errors)
		if err != nil || len(result.Errors) == 0 || len(text) > 10_000 || used > maxRejectTime {
			t.Errorf("%s: got %d errors in %d bytes, %v of CPU time and %v, want some errors in at most 10,000 bytes and %v",
				name, len(result.Errors), len(text), used, err, maxRejectTime)
		}
	}
}

func TestNullForNonNullArguments(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for query, message := range map[string]string{
		`query ($s: ToolSort) {category(slug: "code") {tools(sort: $s) {slug}}}`:                             "sort must not be null.",
		`query ($s: Int) {tools(limit: $s) {meta {total}}}`:                                                  "limit must not be null.",
		`query ($s: Int) {tools {...P}} fragment P on ToolPage {items {category {tools(limit: $s) {slug}}}}`: "limit must not be null.",
	} {
		wantRejected(t, execute(t, e, "", query, map[string]any{"s": nil}), "BAD_USER_INPUT", message)
	}
}

// An omitted variable costs the same as its default.
func TestCostOfDefaults(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	costs := map[string]int{}
	for name, query := range map[string]string{
		"omitted": `query ($l: Int) {categories {tools(limit: $l) {slug name}}}`, "explicit": `{categories {tools(limit: 10) {slug name}}}`,
	} {
		costs[name] = execute(t, e, "", query).Cost
	}
	check.Equal(t, costs["omitted"], costs["explicit"])
	check.True(t, costs["omitted"] >= 400, "got costs %v, want equal ones of at least 400", costs)
}

func aliases(n int) string {
	var fields strings.Builder
	for i := range n {
		fmt.Fprintf(&fields, "a%d:slug ", i)
	}
	return fields.String()
}

const allowedSorts = "Allowed: score_desc, score_asc, name_asc, name_desc, updated_desc, updated_asc, price_asc, price_desc, " +
	"monthly_price_asc, monthly_price_desc, value_desc, relevance."

func TestInvalidVariables(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	many := make([]any, 70_000)
	for i := range many {
		many[i] = "code"
	}
	const query = `query ($page: Int!, $filter: ToolFilter) {tools(page: $page, filter: $filter) {meta {total}}}`
	wantRejected(t, execute(t, e, "", query, map[string]any{}), "BAD_USER_INPUT", "$page is required.")
	wantRejected(t, execute(t, e, "", `query ($sort: ToolSort!) {tools(sort: $sort) {meta {total}}}`, map[string]any{"sort": "best"}), "BAD_USER_INPUT", "$sort must be of type ToolSort!. "+allowedSorts)
	for name, variables := range map[string]map[string]any{
		"text":                {"page": "1"},
		"past 32 bits":        {"page": json.Number("4294967296")},
		"half":                {"page": json.Number("1.5")},
		"null":                {"page": nil},
		"an invalid date":     {"page": json.Number("1"), "filter": map[string]any{"updatedSince": "yesterday"}},
		"a boolean in a list": {"page": json.Number("1"), "filter": map[string]any{"categories": []any{"code", true}}},
		"unknown field":       {"page": json.Number("1"), "filter": map[string]any{"colour": "red"}},
		"more than 65,535":    {"page": json.Number("1"), "filter": map[string]any{"categories": many}},
		"a number too high":   {"page": json.Number("1"), "filter": map[string]any{"scoreMin": json.Number("1e999")}},
	} {
		t.Run(name, func(t *testing.T) {
			result := execute(t, e, "", query, variables)
			check.MustTrue(t, len(result.Errors) != 0, "got %s %v, want BAD_USER_INPUT", result.Data, result.Errors)
			check.Equal(t, result.Errors[0].Extensions["code"], "BAD_USER_INPUT", "%s %v", result.Data, result.Errors)
		})
	}
}

// cpuTime returns the CPU time that do takes on this thread.
func cpuTime(t *testing.T, do func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID
		var spent syscall.Timespec
		_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&spent)), 0)
		check.Must(t, failed, 0)
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

// ring returns fragments that each spread the following ones at some distances.
func ring(length int, on string, distances ...int) string {
	var text strings.Builder
	for i := range length {
		fmt.Fprintf(&text, "fragment F%d on %s {", i, on)
		for _, distance := range distances {
			fmt.Fprintf(&text, "...F%d ", (i+distance)%length)
		}
		text.WriteString("} ")
	}
	return text.String()
}

// hostileDocuments returns documents of up to 100 kB that are expensive to reject.
func hostileDocuments() map[string]string {
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
		"inline fragments":              "{tools {items {" + nested(900, "...{", strings.Repeat("slug ", 50)+strings.Repeat("name ", 50)) + "}}}",
		"conflicts in inline fragments": "{tools {items {" + nested(5, "...{", strings.Repeat("slug ", 25)+strings.Repeat("slug: name ", 24)) + "}}}",
		"conflicts":                     "{tools {items {" + strings.Repeat("slug ", 70) + strings.Repeat("slug: name ", 69) + "}}}",
		"a chain of fragments":          chain(430, "slug"),
		"arguments below a chain":       chain(100, "slug("+repeated(900, "a%d: 1 ")+")"),
		"directives below a chain":      chain(100, "slug "+repeated(1_400, "@a%d ")),
		"fields below a chain":          chain(20, repeated(450, "a%d ")),
		"a ring with chords":            "{tools {items {...F0}}}" + ring(330, "Tool", 1, 7),
		"operations that spread a ring": repeated(300, "query Q%d {...F0} ") + ring(200, "Query", 1),
		"deep fields with long names":   "{tools {items {" + nested(115, strings.Repeat("a", 190)+": category {"+strings.Repeat("b", 190)+": tools {", "slug") + strings.Repeat("}", 115) + "}}}",
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

// Rejecting a document of up to 100 kB takes at most 20 ms of CPU time and leaves
// nothing in the cache.
func TestRejectingIsCheap(t *testing.T) {
	const most = 20 * time.Millisecond
	responses := cache.New(64<<20, nil, slog.New(slog.DiscardHandler))
	e := graphtest.New(graph.Config{
		Catalog: testkit.Open(t, testkit.SQLite(t)), Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Cache: responses,
	})
	for name, query := range hostileDocuments() {
		check.MustTrue(t, len(query) <= 100_000, "%s: got a document of %d bytes, want at most 100,000", name, len(query))
		var result *graph.Result
		least := time.Hour
		for range 3 { // the shortest run has no garbage collection
			least = min(least, cpuTime(t, func() { result = execute(t, e, "", query) }))
		}
		check.True(t, result.Rejected(), "%s: got %.100s, want a rejection", name, result.Data)
		check.True(t, least <= most, "%s: got %v of CPU time, want at most %v", name, least, most)
		t.Logf("%-32s %v", name, least)
	}
	check.Equal(t, responses.Entries(), 0, "items in the cache")
}

// The error for a misspelled name in a short document suggests the right one.
func TestSuggestions(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	result := execute(t, e, "", "{tools {items {sluq}}}")
	check.MustTrue(t, len(result.Errors) != 0, "got %v, want a suggestion of slug", result.Errors)
	check.Contains(t, result.Errors[0].Message, `"slug"`)
}

// @defer is not supported, so the schema must not have it.
func TestNoDefer(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		check.Lacks(t, mustExecute(t, e, "{__schema {directives {name}}}"), "defer")
		wantRejected(t, execute(t, e, "", "{tools {... @defer {items {slug}}}}"), "GRAPHQL_VALIDATION_FAILED", `Unknown directive "@defer".`)
	})
}
