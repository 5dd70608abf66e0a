package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func inVoix(t *record.Tool) { t.Category = "voix" }

func updatedOn(day string, change func(*record.Tool)) func(*record.Tool) {
	return func(t *record.Tool) { t.UpdatedAt = day; change(t) }
}

func withPrice(price string) func(*record.Tool)  { return func(t *record.Tool) { t.Price = price } }
func withScore(score float64) func(*record.Tool) { return func(t *record.Tool) { t.Score = &score } }
func withoutScore(t *record.Tool)                { t.Score = nil }

type changesPage struct {
	Changes struct {
		Nodes    []change
		Edges    []struct{ Cursor string }
		PageInfo struct {
			HasNextPage, HasPreviousPage bool
			StartCursor, EndCursor       *string
		}
	}
}

type change struct{ ID, Type, Slug, Category string }

const changeFields = ` {nodes {id type slug category} edges {cursor} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`

func changesOf(t *testing.T, e *graph.Executor, arguments string) changesPage {
	t.Helper()
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	return decode[changesPage](t, mustExecute(t, e, `{changes`+arguments+changeFields))
}

func summarize(page changesPage) []string {
	lines := []string{}
	for _, c := range page.Changes.Nodes {
		lines = append(lines, strings.TrimSpace(c.Type+" "+c.Slug))
	}
	return lines
}

func TestChanges(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		empty := changesOf(t, e, "")
		check.Equal(t, len(empty.Changes.Nodes), 0, "before the first import")
		check.Equal(t, empty.Changes.PageInfo.EndCursor, nil, "before the first import")
		check.Equal(t, empty.Changes.PageInfo.HasNextPage, false, "before the first import")
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("v", inVoix), feedtest.Comparison("a", "a", "v"), feedtest.Comparison("b-vs-a", "b", "a")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a", updatedOn("2026-11-02", withPrice("15 €/mois"))), feedtest.Tool("c"), feedtest.Tool("v", inVoix, updatedOn("2026-11-02", withScore(9))), feedtest.Comparison("a", "a", "v")))

		all := changesOf(t, e, "")
		expect(t, "in order", summarize(all), []string{
			"category_created code", "category_created voix",
			"tool_created a", "tool_created b", "tool_created v", "comparatif_published a", "comparatif_published b-vs-a", "catalog_published",
			"tool_updated a", "price_changed a", "tool_created c", "tool_updated v", "comparatif_removed b-vs-a", "tool_removed b", "embeddings_changed v", "catalog_published",
		})
		newest := summarize(changesOf(t, e, "order: newest_first"))
		slices.Reverse(newest)
		expect(t, "newest first", newest, summarize(all))
		for i, edge := range all.Changes.Edges {
			expect(t, "cursor", edge.Cursor, all.Changes.Nodes[i].ID)
		}

		for arguments, want := range map[string][]string{
			`types: [price_changed]`:                                             {"price_changed a"},
			`types: [tool_removed, tool_created, tool_created]`:                  {"tool_created a", "tool_created b", "tool_created v", "tool_created c", "tool_removed b"},
			`types: [tool_removed, tool_created], first: 2, order: newest_first`: {"tool_removed b", "tool_created c"},
			`types: []`:           {},
			`category: "voix"`:    {"category_created voix", "tool_created v", "comparatif_published a", "tool_updated v", "embeddings_changed v"},
			`slug: "code"`:        {"category_created code"},
			`category: "nowhere"`: {},
			`category: ""`:        {},
			`category: "voix", types: [comparatif_published, tool_updated]`:                  {"comparatif_published a", "tool_updated v"},
			`category: "code", types: [comparatif_published, comparatif_removed]`:            {"comparatif_published a", "comparatif_published b-vs-a", "comparatif_removed b-vs-a"},
			`after: "evt_9000000000000000"`:                                                  {}, // in microseconds, the year 2255
			`after: "evt_9000000000000000", order: newest_first, types: [tool_removed]`:      {"tool_removed b"},
			`after: "evt_1", order: newest_first, types: [catalog_published]`:                {},
			`after: "` + all.Changes.Nodes[14].ID + `"`:                                      {"catalog_published"},
			`after: "` + all.Changes.Nodes[3].ID + `", order: newest_first`:                  {"tool_created a", "category_created voix", "category_created code"},
			`after: "` + all.Changes.Nodes[10].ID + `", types: [tool_created, tool_removed]`: {"tool_removed b"},
		} {
			expect(t, arguments, summarize(changesOf(t, e, arguments)), want)
		}

		hash := record.SectionsHash(feedtest.Tool("a").Sections)
		expect(t, "all fields of an update", mustExecute(t, e, `{changes(types: [tool_updated], first: 1) {nodes {release fields before after tool {name price} otherCategory}}}`),
			`{"changes":{"nodes":[{"release":2,"fields":["price","updated_at"],`+
				`"before":{"slug":"a","name":"Outil a","domain":"a.example","category":"code","icp":"mixte","pricing":"payant","price":"20 €/mois","score":7.5,"verifiability":null,"tagline":"Un outil.","canonical_url":"https://palmares.example/a","avis_url":null,"alternatives_url":"https://palmares.example/alt/a","updated_at":"2026-11-01","ends_at":null,"tier":3,"mainstream":false,"obsolescence":null,"translations":{},"sources":[],"sections_hash":"`+hash+`"},`+
				`"after":{"slug":"a","name":"Outil a","domain":"a.example","category":"code","icp":"mixte","pricing":"payant","price":"15 €/mois","score":7.5,"verifiability":null,"tagline":"Un outil.","canonical_url":"https://palmares.example/a","avis_url":null,"alternatives_url":"https://palmares.example/alt/a","updated_at":"2026-11-02","ends_at":null,"tier":3,"mainstream":false,"obsolescence":null,"translations":{},"sources":[],"sections_hash":"`+hash+`"},`+
				`"tool":{"name":"Outil a","price":"15 €/mois"},"otherCategory":null}]}}`)
		expect(t, "a comparison with a tool's slug", mustExecute(t, e, `{changes(types: [comparatif_published], first: 1) {nodes {slug category otherCategory before after tool {name}}}}`),
			`{"changes":{"nodes":[{"slug":"a","category":"code","otherCategory":"voix","before":null,"after":{"slug":"a","title":"Lequel ?","tool_a_slug":"a","tool_b_slug":"v","winner":"Outil a","winner_note":"Plus net.","updated_at":"2026-10-01","canonical_url":"https://palmares.example/duel/a","translations":{},"winner_slug":"a"},"tool":null}]}}`)
		expect(t, "together with that tool", mustExecute(t, e, `{changes(types: [tool_created, comparatif_published], first: 4) {nodes {slug tool {slug}}}}`),
			`{"changes":{"nodes":[{"slug":"a","tool":{"slug":"a"}},{"slug":"b","tool":null},{"slug":"v","tool":{"slug":"v"}},{"slug":"a","tool":null}]}}`)
		expect(t, "a removed tool", mustExecute(t, e, `{changes(types: [tool_removed]) {nodes {slug after tool {name}}}}`),
			`{"changes":{"nodes":[{"slug":"b","after":null,"tool":null}]}}`)
		expect(t, "a release", mustExecute(t, e, `{changes(types: [catalog_published], order: newest_first, first: 1) {nodes {slug category fields before after tool {name}} edges {node {tool {slug}}}}}`),
			`{"changes":{"nodes":[{"slug":null,"category":null,"fields":[],"before":null,"after":{"updated_at":"2026-11-02","tools_total":3,"tools_retired":0,"comparatifs_total":1,`+
				`"events":{"comparatif.removed":1,"embeddings.changed":1,"price.changed":1,"tool.created":1,"tool.removed":1,"tool.updated":2}},"tool":null}],"edges":[{"node":{"tool":null}}]}}`)

		event := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 1})).OK(t)
		expect(t, "when", mustExecute(t, e, `{changes(first: 1) {nodes {publishedAt}}}`),
			`{"changes":{"nodes":[{"publishedAt":"`+event[0].At.UTC().Format(time.RFC3339)+`"}]}}`)
	})
}

func TestChangeTypesMatchEvents(t *testing.T) {
	var values []string
	for _, value := range loadSchema(t).Types["ChangeType"].EnumValues {
		values = append(values, strings.ReplaceAll(value.Name, "_", "."))
	}
	expect(t, "types", values, journal.Events)
}

func TestInvalidChangesArguments(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		const notACursor = "after must be an event ID, such as evt_42."
		for arguments, message := range map[string]string{
			`first: 201`:        "first must be an integer from 0 to 200 (got 201).",
			`first: -1`:         "first must be an integer from 0 to 200 (got -1).",
			`last: 201`:         "last must be an integer from 0 to 200 (got 201).",
			`first: 1, last: 1`: "first and last cannot be used together.",
			`before: "42"`:      "before must be an event ID, such as evt_42.",
			`release: 0`:        "release must be at least 1 (got 0).",
			`slug: "a\u0000"`:   "slug must not contain NUL characters.",
			`fields: ["prix"]`: `fields: there is no field "prix". The fields are: slug, name, domain, category, icp, pricing, price, score, verifiability, tagline, ` +
				`canonical_url, avis_url, alternatives_url, updated_at, ends_at, tier, mainstream, obsolescence, translations, sources, sections_hash, reason, retired_at, note, title, tool_a_slug, tool_b_slug, winner, winner_note, winner_slug, label, chunks, metadata.`,
			`fields: [` + strings.Repeat(`"price" `, 21) + `]`: "fields must have at most 20 names (got 21).",
			`after: "42"`:                       notACursor,
			`after: "evt_"`:                     notACursor,
			`after: "evt_0"`:                    notACursor,
			`after: "evt_-1"`:                   notACursor,
			`after: "evt_042"`:                  notACursor,
			`after: "evt_4 2"`:                  notACursor,
			`after: "EVT_42"`:                   notACursor,
			`after: "evt_99999999999999999999"`: notACursor,
			`after: "` + cursorOf(`{"l":"comparisons","p":["2026-01-01","a"]}`) + `"`: notACursor,
			`category: "a\u0000"`: "category must not contain NUL characters.",
			`types: [` + strings.Repeat("tool_created ", 201) + `]`: "The document must not contain a list of more than 200 values.",
		} {
			wantRejected(t, execute(t, e, auth.Developer, `{changes(`+arguments+`) {nodes {id}}}`), "BAD_USER_INPUT", message)
		}
		expect(t, "the largest cursor", len(changesOf(t, e, `after: "evt_9223372036854775807", order: newest_first, first: 3`).Changes.Nodes), 3)
		expect(t, "the most at once", len(changesOf(t, e, `first: 200`).Changes.Nodes) > 50, true)
		result := execute(t, e, auth.Developer, `{changes(first: 200, category: "code") {nodes {id type before after}}}`)
		expect(t, "cost", result.Cost, 1+1+200*4+5+1500)
	})
}

// A client that follows the cursors sees every event once, in either order, while
// imports run.
func TestChangesDuringImports(t *testing.T) {
	var feeds [3][]byte
	for i := range feeds {
		feeds[i] = feedtest.Synthetic(t, synth.Options{Tools: 40 + 10*i, Seed: 9, Revision: i})
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feeds[0])
		e := newExecutor(s)
		ctx, stop := context.WithTimeout(t.Context(), wait.Limit)
		defer stop()
		var importing sync.WaitGroup
		importing.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				_, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feeds[i%3])), publish.Options{Force: true})
				check.Equal(t, err, nil)
			}
		})
		const some = `, types: [tool_created, tool_updated, tool_removed, price_changed, catalog_published]`
		var forward, few []string
		follow := func(seen *[]string, filter string) bool {
			after := ""
			if n := len(*seen); n > 0 {
				after = `, after: "` + (*seen)[n-1] + `"`
			}
			page := changesOf(t, e, "first: 37"+after+filter)
			for _, c := range page.Changes.Nodes {
				*seen = append(*seen, c.ID)
			}
			return page.Changes.PageInfo.HasNextPage
		}
		backwards := 0
		for ctx.Err() == nil && (len(forward) < 300 || backwards < 10) {
			follow(&forward, "")
			follow(&few, some)
			if backwards++; backwards%5 == 0 {
				walkBack(t, e, forward[0])
			}
		}
		stop()
		importing.Wait()
		for follow(&forward, "") {
		}
		for follow(&few, some) {
		}
		expect(t, "all, forwards", strings.Join(forward, " "), strings.Join(storedEvents(t, s), " "))
		expect(t, "some, forwards", strings.Join(few, " "), strings.Join(storedEvents(t, s, "tool.created", "tool.updated", "tool.removed", "price.changed", "catalog.published"), " "))
		check.True(t, len(forward) >= 200 && backwards >= 10, "got %d events and %d rounds, want at least 200 and 10", len(forward), backwards)
	})
}

// walkBack reads from the newest event to the oldest, and checks that none is
// missing, even if new ones are published in the meantime.
func walkBack(t *testing.T, e *graph.Executor, oldest string) {
	t.Helper()
	var seen []string
	after := ""
	for {
		page := changesOf(t, e, "first: 150, order: newest_first"+after)
		for _, c := range page.Changes.Nodes {
			seen = append(seen, c.ID)
		}
		if !page.Changes.PageInfo.HasNextPage {
			break
		}
		after = `, after: "` + *page.Changes.PageInfo.EndCursor + `"`
	}
	expect(t, "the first event", seen[len(seen)-1], oldest)
	var forwards []string
	for after = ""; ; {
		page := changesOf(t, e, "first: 200"+after)
		for _, c := range page.Changes.Nodes {
			forwards = append(forwards, c.ID)
		}
		if len(forwards) >= len(seen) {
			break
		}
		after = `, after: "` + forwards[len(forwards)-1] + `"`
	}
	forwards = forwards[:len(seen)]
	slices.Reverse(seen)
	expect(t, "backwards", strings.Join(seen, " "), strings.Join(forwards, " "))
}

func storedEvents(t *testing.T, s *store.Store, types ...string) []string {
	t.Helper()
	rows := check.Try(s.Read.QueryContext(t.Context(), "SELECT id, event FROM journal_entries WHERE event IS NOT NULL ORDER BY id")).OK(t)
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id int
		var event string
		check.OK(t, rows.Scan(&id, &event))
		if len(types) == 0 || slices.Contains(types, event) {
			ids = append(ids, fmt.Sprintf("evt_%d", id))
		}
	}
	return ids
}

// Long reviews lead to shorter pages, not to larger responses, and a client that
// follows the cursors still sees every event.
func TestChangesWithLongReviews(t *testing.T) {
	const long, most = 700_000, 2_500_000
	catalog := func(date, letter string) []byte {
		var tools []any
		for i := range 6 {
			tools = append(tools, feedtest.Tool(fmt.Sprintf("t%d", i), func(t *record.Tool) { t.Tagline = strings.Repeat(letter, long) }),
				feedtest.Tool(fmt.Sprintf("u%d", i), updatedOn(date, func(*record.Tool) {})))
		}
		return feedtest.Catalog(date, tools...)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		feedtest.Publish(t, s, catalog("2026-11-01", "a"))
		feedtest.Publish(t, s, catalog("2026-11-02", "b"))
		for _, filter := range []struct {
			arguments string
			types     []string
		}{
			{"", nil},
			{", types: [tool_updated]", []string{"tool.updated"}},
			{", types: [tool_updated, catalog_published]", []string{"tool.updated", "catalog.published"}},
		} {
			want := storedEvents(t, s, filter.types...)
			expect(t, "oldest first"+filter.arguments, walkLong(t, e, filter.arguments, most), want)
			slices.Reverse(want)
			expect(t, "newest first"+filter.arguments, walkLong(t, e, filter.arguments+", order: newest_first", most), want)
		}
	})
}

// walkLong reads all events, with a maximum size of each response.
func walkLong(t *testing.T, e *graph.Executor, arguments string, most int) (seen []string) {
	t.Helper()
	for after, pages := "", 1; ; pages++ {
		text := mustExecute(t, e, `{changes(first: 200`+arguments+after+`) {nodes {id before after} pageInfo {hasNextPage endCursor}}}`)
		page := decode[changesPage](t, text).Changes
		if len(text) > most || len(page.Nodes) == 0 || *page.PageInfo.EndCursor != page.Nodes[len(page.Nodes)-1].ID {
			t.Fatalf("%s%s: got %d bytes and %d events, want at most %d bytes", arguments, after, len(text), len(page.Nodes), most)
		}
		for _, c := range page.Nodes {
			seen = append(seen, c.ID)
		}
		if !page.PageInfo.HasNextPage {
			check.True(t, pages >= 6, "%s: got %d pages, want at least 6", arguments, pages)
			return seen
		}
		after = `, after: "` + *page.PageInfo.EndCursor + `"`
	}
}

// Events are the same as those that webhooks deliver, including those of tools, and every
// connection has a cursor to continue from.
func TestDeliveredEvents(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		expect(t, "before the first release", mustExecute(t, e, `{changes {events nextCursor}}`), `{"changes":{"events":[],"nextCursor":null}}`)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a", withPrice("5 €/mois")), feedtest.Tool("c")))
		stored := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 100})).OK(t)
		var all, ofA []string
		for _, event := range stored {
			all = append(all, string(event.JSON()))
			if event.Slug == "a" { // newest first below a tool
				ofA = append([]string{string(event.JSON())}, ofA...)
			}
		}
		newest := stored[len(stored)-1].ID()
		type events struct {
			Events     []json.RawMessage
			NextCursor string
		}
		verify := func(what string, got events, want []string, next string) {
			t.Helper()
			var texts []string
			for _, event := range got.Events {
				texts = append(texts, string(event))
			}
			expect(t, what, strings.Join(texts, "\n"), strings.Join(want, "\n"))
			expect(t, what+", next", got.NextCursor, next)
		}
		list := func(e *graph.Executor, arguments string) events {
			return decode[struct{ Changes events }](t, mustExecute(t, e, `{changes(`+arguments+`) {events nextCursor}}`)).Changes
		}
		verify("all", list(e, `first: 200`), all, newest)
		verify("newest first", list(e, `first: 1, order: newest_first`), all[len(all)-1:], newest)
		verify("none", list(e, `slug: "x"`), nil, newest)
		verify("none after a cursor", list(e, `slug: "x", after: "evt_7"`), nil, "evt_7")
		tools := decode[struct {
			Tools struct{ Items []struct{ Changes events } }
		}](t, mustExecute(t, e, `{tools(limit: 2, sort: name_asc) {items {changes {events nextCursor}}}}`)).Tools.Items
		verify("of a tool", tools[0].Changes, ofA, journalID(ofA[len(ofA)-1]))
		earlier := decode[struct{ Changes events }](t, mustExecute(t, e, `query @asOf(release: 1) {changes(slug: "x") {events nextCursor}}`)).Changes
		last := stored[0].ID()
		for _, event := range stored {
			if event.Release == 1 {
				last = event.ID()
			}
		}
		verify("of an earlier release", earlier, nil, last)
	})
}

// journalID returns the ID of an event in JSON.
func journalID(event string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(event, `{"id":"`), `"`)
	return id
}

// changesFilter is a random combination of the conditions on changes.
type changesFilter struct {
	arguments string
	matches   func(*journal.Event) bool
}

func randomFilter(random *rand.Rand) changesFilter {
	var arguments strings.Builder
	var conditions []func(*journal.Event) bool
	add := func(condition func(*journal.Event) bool, format string, values ...any) {
		fmt.Fprintf(&arguments, " "+format, values...)
		conditions = append(conditions, condition)
	}
	some := func(values []string) (chosen []string) {
		for range 1 + random.IntN(4) {
			chosen = append(chosen, values[random.IntN(len(values))])
		}
		return chosen
	}
	maybe := func() bool { return random.IntN(4) == 0 }
	if maybe() {
		types := some(journal.Events)
		add(func(e *journal.Event) bool { return slices.Contains(types, e.Type) }, "types: [%s]", strings.ReplaceAll(strings.Join(types, " "), ".", "_"))
	}
	if maybe() {
		category := []string{"code", "voix", "vide"}[random.IntN(3)]
		add(func(e *journal.Event) bool { return e.Category == category || e.OtherCategory == category }, "category: %q", category)
	}
	if maybe() {
		slug := []string{"t0", "t1", "t5", "c3", "vide"}[random.IntN(5)]
		add(func(e *journal.Event) bool { return e.Slug == slug }, "slug: %q", slug)
	}
	if maybe() {
		day := fmt.Sprintf("2026-03-%02d", random.IntN(16))
		add(func(e *journal.Event) bool { return e.At.UTC().Format("2006-01-02") >= day }, "since: %q", strings.Replace(day, "-00", "-01", 1))
	}
	if maybe() {
		day := fmt.Sprintf("2026-03-%02d", 1+random.IntN(16))
		add(func(e *journal.Event) bool { return e.At.UTC().Format("2006-01-02") < day }, "until: %q", day)
	}
	if maybe() {
		release := 1 + random.IntN(randomReleases+2)
		add(func(e *journal.Event) bool { return e.Release == release }, "release: %d", release)
		add(func(e *journal.Event) bool { return e.Release > release }, "afterRelease: %d", release)
	}
	if maybe() {
		fields := some(journal.FieldNames)
		add(func(e *journal.Event) bool {
			return slices.ContainsFunc(e.Fields, func(name string) bool { return slices.Contains(fields, name) })
		}, `fields: ["%s"]`, strings.Join(fields, `" "`))
	}
	return changesFilter{arguments.String(), func(e *journal.Event) bool {
		return !slices.ContainsFunc(conditions, func(matches func(*journal.Event) bool) bool { return !matches(e) })
	}}
}

// All conditions can be combined with each other, with both orders and with all
// parts of a connection, in each release.
func TestChangesFilters(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishRandom(t, s, 7, nil)
		e, random, all := newExecutor(s), rand.New(rand.NewPCG(5, 5)), allEvents(t, s)
		found := 0
		for range 400 {
			filter, release, order := randomFilter(random), randomReleases, "oldest_first"
			var ids []string
			directive := ""
			if random.IntN(2) == 0 {
				release = 1 + random.IntN(randomReleases)
				directive = fmt.Sprintf("query @asOf(release: %d) ", release)
			}
			for _, event := range all {
				if filter.matches(event) && event.Release <= release {
					ids = append(ids, event.ID())
				}
			}
			if random.IntN(2) == 0 {
				order = "newest_first"
				slices.Reverse(ids)
			}
			part := randomRelay(random, ids)
			query := directive + "{changes(order: " + order + filter.arguments + part.arguments() + ") " + partFields + "}}"
			decode[struct{ Changes connectionOf }](t, mustExecute(t, e, query)).Changes.check(t, query, ids, part)
			found += len(ids)
		}
		check.True(t, found >= 2000, "got %d events, want at least 2000", found)
	})
}

// Lists with no values match nothing, and so do days and releases without events.
func TestChangesThatCannotMatch(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		none := `{"changes":{"nodes":[],"pageInfo":{"hasNextPage":false,"hasPreviousPage":false,"endCursor":null}}}`
		cannot := func(arguments string) {
			t.Helper()
			expect(t, arguments, mustExecute(t, e, `{changes(`+arguments+`) {nodes {id} pageInfo {hasNextPage hasPreviousPage endCursor}}}`), none)
		}
		cannot(`first: 3`) // before the first import
		publishRandom(t, s, 7, nil)
		for _, arguments := range []string{
			`types: []`, `fields: []`, `slug: ""`, `category: ""`, `release: 99`, `afterRelease: 99`, `release: 2, afterRelease: 2`, `since: "2026-05-01"`, `until: "2026-03-01"`,
			`since: "2026-03-05", until: "2026-03-05"`, `fields: ["price"], types: [tool_created]`, `fields: ["title"], types: [tool_updated]`,
		} {
			cannot(arguments)
		}
	})
}

// Some clients send an empty cursor instead of none.
func TestEmptyCursors(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for _, list := range []string{
			`toolConnection(first: 3%s) ` + partFields + ` totalCount}`,
			`comparisonConnection(last: 3%s) ` + partFields + `}`,
			`retiredToolConnection(first: 3%s) ` + partFields + `}`,
			`releases(first: 3%s) {nodes {id} pageInfo {hasNextPage hasPreviousPage}}`,
			`changes(last: 3%s) ` + partFields + `}`,
			`tool(slug: "plume") {comparisonConnection(first: 1%s) ` + partFields + `}}`,
			`tool(slug: "plume") {changes(first: 1%s) ` + partFields + `}}`,
			`category(slug: "voix") {toolConnection(last: 1%s) ` + partFields + `}}`,
		} {
			expect(t, list, mustExecute(t, e, fmt.Sprintf("{"+list+"}", `, after: "", before: ""`)), mustExecute(t, e, fmt.Sprintf("{"+list+"}", "")))
		}
	})
}
