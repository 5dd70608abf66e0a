package document_test

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzDocument checks that comments do not change the identity of a document, that converted
// variables are in their final form, and that every accepted operation has a cost.
func FuzzDocument(f *testing.F) {
	for query, variables := range map[string]string{
		"{feed {release}}": `{}`,
		"query ($n: Int! = 2, $f: ToolFilter) {tools(limit: $n, filter: $f) {items {...T}}} fragment T on Tool {slug alternatives {slug}}": `{"n":3,"f":{"categories":["code"],"scoreMin":7}}`,
		"query ($s: [SeriesMetric!]!) {series(metrics: $s, every: month) {points {value}}}":                                                `{"s":"count"}`,
		"{a: tool(slug: \"plume\") @skip(if: false) {slug} ... on Query {stats {toolsTotal}}}":                                             `null`,
		"subscription {released {release}}":       `{"unknown":1}`,
		"{tools(limit: 99999999999) {items}} # x": `{`,
	} {
		f.Add(query, variables)
	}
	parser := document.NewParser(graph.Schema(), graph.DefaultLimits, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))
	f.Fuzz(func(t *testing.T, query, variables string) {
		doc, errs := parser.Parse(query)
		if len(errs) > 0 {
			check.Equal(t, doc, nil, "%q: %v", query, errs)
			check.True(t, errs[0].Message != "", "%q: got %v, want an error with a message", query, errs)
			return
		}
		if again, errs := parser.Parse("# comment\n,," + query + "\n,# comment"); len(errs) > 0 || again.ID != doc.ID {
			t.Errorf("%q: got %v with comments, want the same document", query, errs)
		}
		var given map[string]any
		decoder := json.NewDecoder(strings.NewReader(variables))
		decoder.UseNumber()
		if decoder.Decode(&given) != nil {
			return
		}
		for _, op := range doc.Operations {
			read, withDefaults, p := document.Variables(graph.Schema(), op, given)
			if p != nil {
				check.Equal(t, p.Code, problem.BadInput, "%q with %q: %v", query, variables, p)
				continue
			}
			if again, _, p := document.Variables(graph.Schema(), op, read); p != nil || !reflect.DeepEqual(again, read) {
				t.Errorf("%q with %q: got %v and %v from %v, want the same", query, variables, again, p, read)
			}
			cost := document.Calculate(op, withDefaults, document.Size{Tools: 100, Categories: 10})
			check.True(t, cost.Total >= 0, "%q with %q: got cost %d, want none below 0", query, variables, cost.Total)
		}
	})
}
