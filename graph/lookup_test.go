package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

const lookupFields = `__typename slug title: name ...F}} fragment F on Tool {domain categorySlug icp icpCode pricing price priceAmount pricePeriod
	score verifiability obsolescence tagline canonicalUrl avisUrl alternativesUrl updatedAt tier mainstream}`

func newOperation(t testing.TB, text string) *graph.Operation {
	t.Helper()
	operation, err := graph.NewOperation(text)
	testkit.Check(t, err)
	return operation
}

// following returns an executor that keeps the newest release in memory, as that of
// a server does.
func following(t testing.TB, s *store.Store) *graph.Executor {
	t.Helper()
	e := newExecutor(s)
	go e.Follow(t.Context(), func(*ent.Release) bool { return true })
	wait.Until(t, "the release is in memory", e.Loaded)
	return e
}

// Results from memory are the same as those of gqlgen.
func TestFromMemory(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, syntheticFeed(t, synth.Options{Tools: 100, Seed: 5}))
		tool := newOperation(t, `query($slug: String!) {body: tool(slug: $slug) {`+lookupFields)
		before := newExecutor(s)
		e := following(t, s)
		all := decode[struct {
			Tools struct{ Items []struct{ Slug string } }
		}](t, mustExecute(t, e, `{tools(limit: 200) {items {slug}}}`))
		if len(all.Tools.Items) < 50 {
			t.Fatalf("got %d tools, want more", len(all.Tools.Items))
		}
		for _, item := range all.Tools.Items {
			req := graph.Request{Operation: tool, Variables: map[string]any{"slug": item.Slug}}
			got := e.FromMemory(t.Context(), req)
			if got == nil {
				t.Fatalf("%s: got nothing from memory, want a result", item.Slug)
			}
			expect(t, item.Slug, got, e.Execute(t.Context(), req))
			if got := before.FromMemory(t.Context(), req); got != nil {
				t.Fatalf("%s: got %s before anything is in memory, want nothing", item.Slug, got.Data)
			}
		}
		feedtest.Publish(t, s, syntheticFeed(t, synth.Options{Tools: 100, Seed: 6}))
		wait.Until(t, "the next release is in memory", func() bool {
			got := e.FromMemory(t.Context(), graph.Request{Operation: tool, Variables: map[string]any{"slug": all.Tools.Items[0].Slug}})
			return got != nil && got.Release == 2
		})
	})
}

// All other operations have to be executed.
func TestNotFromMemory(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, syntheticFeed(t, synth.Options{Tools: 100, Seed: 5}))
	e := following(t, s)
	data := mustExecute(t, e, `{tools(limit: 1) {items {slug}} retiredTools(limit: 1) {items {slug}}}`)
	found := decode[struct {
		Tools, RetiredTools struct{ Items []struct{ Slug string } }
	}](t, data)
	active, retired := found.Tools.Items[0].Slug, found.RetiredTools.Items[0].Slug
	const tool = `query($slug: String!) {tool(slug: $slug) {slug}}`
	for name, c := range map[string]struct {
		query string
		slug  any
		asOf  graph.AsOf
		found bool
	}{
		"one tool":           {query: tool, slug: active, found: true},
		"an earlier release": {query: tool, slug: active, asOf: graph.AsOf{Release: 1}},
		"a retired tool":     {query: tool, slug: retired},
		"an unknown tool":    {query: tool, slug: "nobody"},
		"no text":            {query: tool, slug: 1},
		"a link":             {query: `query($slug: String!) {tool(slug: $slug) {slug category {slug}}}`, slug: active},
		"a link in a fragment": {query: `query($slug: String!) {tool(slug: $slug) {...F}} fragment F on Tool {slug comparisons {slug}}`,
			slug: active},
		"two tools":           {query: `query($slug: String!) {tool(slug: $slug) {slug} b: tool(slug: $slug) {slug}}`, slug: active},
		"a fixed slug":        {query: fmt.Sprintf(`query($slug: String!) {tool(slug: %q) {slug} feed {release} t: tool(slug: $slug) {slug}}`, active), slug: active},
		"a directive":         {query: `query($slug: String!) {tool(slug: $slug) {slug name @include(if: true)}}`, slug: active},
		"another root field":  {query: `query($slug: String!) {retiredTool(slug: $slug) {slug}}`, slug: active},
		"a fragment at first": {query: `query($slug: String!) {...F} fragment F on Query {tool(slug: $slug) {slug}}`, slug: active},
	} {
		got := e.FromMemory(t.Context(), graph.Request{Operation: newOperation(t, c.query), Variables: map[string]any{"slug": c.slug}, AsOf: c.asOf})
		if (got != nil) != c.found {
			t.Errorf("%s: got %+v, want a result: %t", name, got, c.found)
		}
	}
}

// Operations executed from memory are traced like all others.
func TestFromMemoryIsTraced(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, syntheticFeed(t, synth.Options{Tools: 20, Seed: 5}))
	var traced []string
	e := graphtest.New(graph.Config{Catalog: s, Log: slog.New(slog.DiscardHandler),
		Trace: func(ctx context.Context, name string) (context.Context, func(string)) {
			traced = append(traced, name)
			return ctx, func(failure string) { traced = append(traced, "end"+failure) }
		}})
	go e.Follow(t.Context(), func(*ent.Release) bool { return true })
	wait.Until(t, "the release is in memory", e.Loaded)
	slug := decode[struct {
		Tools struct{ Items []struct{ Slug string } }
	}](t, mustExecute(t, e, `{tools(limit: 1) {items {slug}}}`)).Tools.Items[0].Slug
	traced = nil
	if e.FromMemory(t.Context(), graph.Request{Operation: newOperation(t, `query look($slug: String!) {tool(slug: $slug) {slug}}`), Variables: map[string]any{"slug": slug}}) == nil {
		t.Fatal("got nothing from memory, want a result")
	}
	expect(t, "traced", traced, []string{"look", "end"})
}
