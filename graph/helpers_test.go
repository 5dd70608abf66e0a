package graph_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const credit = "Source : palmares (https://palmares.example)"

func newExecutor(c release.Database) *graph.Executor { return newExecutorWith(c, graph.DefaultLimits) }

func newExecutorWith(c release.Database, limits document.Limits) *graph.Executor {
	return graphtest.New(graph.Config{Catalog: c, Credit: credit, Limits: limits})
}

// onDemoCatalog runs a test with an executor for the demo catalog on each database.
func onDemoCatalog(t *testing.T, test func(t *testing.T, e *graph.Executor)) {
	t.Helper()
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		test(t, newExecutor(s))
	})
}

func execute(t testing.TB, e *graph.Executor, plan auth.Plan, query string, variables ...map[string]any) *graph.Result {
	t.Helper()
	req := graph.Request{Query: query}
	if len(variables) > 0 {
		req.Variables = variables[0]
	}
	return e.Execute(auth.WithCaller(t.Context(), auth.Caller{Plan: plan}), req)
}

// mustExecute executes a query that must succeed and returns its data as text.
func mustExecute(t testing.TB, e *graph.Executor, query string, variables ...map[string]any) string {
	t.Helper()
	result := execute(t, e, auth.Developer, query, variables...)
	check.Must(t, len(result.Errors), 0, "%s: %v", query, result.Errors)
	return string(result.Data)
}

// decode decodes JSON into a value of type T.
func decode[T any](t testing.TB, data string) T {
	t.Helper()
	var value T
	check.OK(t, json.Unmarshal([]byte(data), &value), "for %s", data)
	return value
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}

// wantRejected checks the code and message of the first error.
func wantRejected(t testing.TB, result *graph.Result, code, message string) {
	t.Helper()
	if len(result.Errors) == 0 {
		t.Errorf("got %s, want error %s", result.Data, code)
		return
	}
	first := result.Errors[0]
	check.Equal[any](t, first.Extensions["code"], code)
	check.Equal(t, first.Message, message)
}

// randomReleases is how many releases publishRandom makes, two on most days.
const randomReleases = 12

func dayOf(release int) string { return fmt.Sprintf("2026-03-%02d", 1+release/2*2) }

// publishRandom publishes releases in which tools and comparisons are added, changed,
// moved, retired, restored and removed. after is called after each.
func publishRandom(t *testing.T, s *store.Store, seed uint64, after func(release int)) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for release := 1; release <= randomReleases; release++ {
		date := dayOf(release)
		var records []any
		var slugs []string
		for i := range 12 {
			slug := fmt.Sprintf("t%d", i)
			switch kind := random.IntN(10); {
			case kind == 0 && i > 3:
				continue
			case kind == 1 && i > 3:
				records = append(records, &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: "2026-01-01", Note: fmt.Sprint("Fermé ", random.IntN(3))})
			default:
				records = append(records, feedtest.Tool(slug, updatedOn(date, func(t *record.Tool) {
					t.Category = []string{"code", "code", "voix"}[random.IntN(3)]
					t.Tagline = fmt.Sprintf("Un %d, \"outil\".", random.IntN(2))
					t.Price = fmt.Sprintf("%d €/mois", 10+random.IntN(2))
					if withoutScore(t); random.IntN(3) > 0 {
						withScore(float64(random.IntN(3)))(t)
					}
				})))
			}
			slugs = append(slugs, slug)
		}
		for i := range 9 {
			a := random.IntN(len(slugs))
			b := (a + 1 + random.IntN(len(slugs)-1)) % len(slugs)
			c := feedtest.Comparison([]string{"t0", "t1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}[i], slugs[a], slugs[b]) // some have the slug of a tool
			c.UpdatedAt, c.Published = fmt.Sprintf("2026-02-%02d", 1+random.IntN(3)), random.IntN(4) > 0
			c.Title = fmt.Sprint("Titre ", random.IntN(2))
			if random.IntN(2) == 0 {
				c.Winner = c.ToolB
			}
			if random.IntN(5) > 0 {
				records = append(records, c)
			}
		}
		published := check.Try(time.Parse(time.DateOnly, date)).OK(t)
		published = published.Add(time.Duration(release%2)*23*time.Hour + 59*time.Minute)
		check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feedtest.Catalog(date, records...))), publish.Options{Force: true, PublishedAt: published})).OK(t)
		if after != nil {
			after(release)
		}
	}
}

// allEvents returns the journal, oldest first.
func allEvents(t *testing.T, s *store.Store) []*journal.Event {
	t.Helper()
	return check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 100_000})).OK(t)
}

// relay is a part of a connection, as its specification defines it.
type relay struct {
	first, last   int // -1 if not given
	after, before string
}

// arguments writes the part as arguments.
func (p relay) arguments() (text string) {
	if p.first >= 0 {
		text += fmt.Sprintf(" first: %d", p.first)
	}
	if p.last >= 0 {
		text += fmt.Sprintf(" last: %d", p.last)
	}
	return text + fmt.Sprintf(" after: %q before: %q", p.after, p.before) // "" for none
}

// apply returns the items of the part, and whether there are items before and
// after it. Items must contain the cursors.
func (p relay) apply(items []string) (part []string, previous, next bool) {
	start, end := 0, len(items)
	if p.after != "" {
		start = slices.Index(items, p.after) + 1
	}
	if p.before != "" {
		end = slices.Index(items, p.before)
	}
	part = items[min(start, end):end]
	if p.last >= 0 {
		cut := max(0, len(part)-p.last)
		return part[cut:], cut > 0, p.before != ""
	}
	limit := p.first
	if limit < 0 {
		limit = 50
	}
	return part[:min(limit, len(part))], p.after != "", len(part) > limit
}

// randomRelay returns a part of a list: one end, with or without cursors.
func randomRelay(random *rand.Rand, items []string) relay {
	p := relay{first: -1, last: -1}
	switch n := random.IntN(min(len(items)+2, 200)); random.IntN(5) {
	case 0, 1:
		p.first = n
	case 2, 3:
		p.last = n
	}
	cursor := func() string {
		if len(items) == 0 || random.IntN(2) == 0 {
			return ""
		}
		return items[random.IntN(len(items))]
	}
	p.after, p.before = cursor(), cursor()
	return p
}

// connectionOf is a connection as responses have it.
type connectionOf struct {
	TotalCount int
	Nodes      []struct{ ID, Slug string }
	Edges      []struct {
		Cursor string
		Node   struct{ ID, Slug string }
	}
	PageInfo struct {
		HasNextPage, HasPreviousPage bool
		StartCursor, EndCursor       *string
	}
}

const partFields = `{nodes {id slug} edges {cursor node {id slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}`

// check compares a connection with a part of all its items, which are IDs.
func (c connectionOf) check(t *testing.T, what string, all []string, p relay) {
	t.Helper()
	want, previous, next := p.apply(all)
	var nodes, edges []string
	for _, node := range c.Nodes {
		nodes = append(nodes, node.ID)
	}
	for _, edge := range c.Edges {
		edges = append(edges, edge.Node.ID)
	}
	expect(t, what, fmt.Sprint(nodes, edges, c.PageInfo.HasPreviousPage, c.PageInfo.HasNextPage), fmt.Sprint(want, want, previous, next))
	if n := len(c.Edges); n > 0 {
		expect(t, what, []string{deref(c.PageInfo.StartCursor), deref(c.PageInfo.EndCursor)}, []string{c.Edges[0].Cursor, c.Edges[n-1].Cursor})
	} else {
		expect(t, what, []string{deref(c.PageInfo.StartCursor), deref(c.PageInfo.EndCursor)}, []string{"", ""})
	}
}

func deref(text *string) string { return *cmp.Or(text, new(string)) }
