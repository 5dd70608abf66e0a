package rest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// life is what should be known about the prices of one slug.
type life struct {
	tool    *record.Tool // as the feed has it; nil while it is retired or absent
	last    *record.Tool // when it was last active
	retired bool
	changes []record.PriceChange // oldest first
	events  int                  // of price.changed
}

// live changes a tool at random: its price and score change, and it is retired,
// removed and returns, sometimes with another price, which its history may list.
func (l *life) live(r *rand.Rand, slug, day string) {
	prices := []string{"0 €/mois", "10 €/mois", "20 €/mois", "90 €/an", "1 €/usage"}
	switch n := r.IntN(10); {
	case n == 0:
		l.tool, l.retired = nil, true
		return
	case n == 1:
		l.tool, l.retired = nil, false
		return
	case n < 5:
		return // as before
	}
	score := float64(r.IntN(3))
	l.retired, l.tool = false, feedtest.Tool(slug, func(t *record.Tool) {
		t.Price, t.UpdatedAt, t.Score = prices[r.IntN(len(prices))], day, &score
		t.Pricing = []string{"payant", "freemium"}[r.IntN(2)]
	})
	if l.last != nil && (l.last.Price != l.tool.Price || l.last.Pricing != l.tool.Pricing) {
		change := record.PriceChange{
			ChangedAt: day, Pricing: l.tool.Pricing, Price: l.tool.Price,
			PreviousPricing: l.last.Pricing, PreviousPrice: l.last.Price,
		}
		if slices.Contains(l.changes, change) { // a day has the same change once
			l.tool.Price, l.tool.Pricing = l.last.Price, l.last.Pricing
		} else {
			l.changes = append(l.changes, change)
			l.events++
		}
	}
	if r.IntN(3) == 0 {
		l.tool.PriceHistory = slices.Clone(l.changes)
		slices.Reverse(l.tool.PriceHistory)
	}
	l.last = l.tool
}

// record returns the tool as a feed has it; nil if it is absent.
func (l *life) record(slug string) any {
	switch {
	case l.tool != nil:
		return l.tool
	case l.retired:
		return feedtest.Retired(slug)
	}
	return nil
}

// moment is an entry of Tool.history.
type moment struct{ At, Pricing, Price string }

// served is what the API shows of one tool.
type served struct {
	PriceHistory []record.PriceChange
	History      []moment
	Events       []record.PriceChange // of price.changed, oldest first
}

// The price history of a slug covers its whole life: priceHistory, the REST path,
// history and the journal agree for each release, also when it is read later.
func TestPricesOfRandomLives(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		r := rand.New(rand.NewPCG(35, 1))
		lives := map[string]*life{}
		for i := range 12 {
			lives[fmt.Sprintf("t%02d", i)] = &life{}
		}
		slugs := slices.Sorted(maps.Keys(lives))
		type era struct {
			release int
			lives   map[string]life
		}
		var eras []era
		returns := 0
		day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 25 {
			day = day.AddDate(0, 0, r.IntN(3))
			records := []any{feedtest.Tool("always")}
			was := map[string]life{}
			for _, slug := range slugs {
				l := lives[slug]
				before := *l
				l.live(r, slug, day.Format(time.DateOnly))
				if before.tool == nil && before.last != nil && l.tool != nil && l.events > before.events {
					returns++
				}
				if rec := l.record(slug); rec != nil {
					records = append(records, rec)
				}
				was[slug] = *l
			}
			report := check.Try(publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(string(feedtest.Catalog(day.Format(time.DateOnly), records...)))), publish.Options{Force: true})).OK(t)
			if report.Release > 0 {
				eras = append(eras, era{report.Release, was})
			}
		}
		check.MustTrue(t, len(eras) >= 20 && returns >= 10, "got %d releases and %d returns with another price, want at least 20 and 10", len(eras), returns)
		api := newAPI(t, s)
		for _, e := range eras {
			for _, slug := range slugs {
				l := e.lives[slug]
				if l.tool != nil {
					checkLife(t, fmt.Sprintf("%s in release %d", slug, e.release), l, api.prices(t, slug, e.release))
				}
			}
		}
	})
}

func checkLife(t *testing.T, name string, want life, got served) {
	t.Helper()
	newestFirst := slices.Clone(want.changes)
	slices.Reverse(newestFirst)
	if !slices.Equal(got.PriceHistory, newestFirst) {
		t.Errorf("%s: got price history\n%v\nwant\n%v", name, got.PriceHistory, newestFirst)
		return
	}
	check.Slices(t, got.Events, want.changes, name)
	check.Equal(t, len(got.Events), want.events, name)
	// Every change starts at the price that the one before it ended at.
	for i, c := range got.Events {
		check.True(t, i == 0 || c.PreviousPrice == got.Events[i-1].Price && c.PreviousPricing == got.Events[i-1].Pricing,
			"%s: got %v at %d of %v, want one that continues the one before it", name, c, i, got.Events)
	}
	for i, m := range got.History {
		price, pricing := want.tool.Price, want.tool.Pricing
		if len(want.changes) > 0 {
			price, pricing = want.changes[0].PreviousPrice, want.changes[0].PreviousPricing
		}
		for _, c := range want.changes {
			if c.ChangedAt <= m.At {
				price, pricing = c.Price, c.Pricing
			}
		}
		check.Equal(t, m.Price, price, "%s: %v", name, m)
		check.Equal(t, m.Pricing, pricing, "%s: %v", name, m)
		check.True(t, i != len(got.History)-1 || m.Price == want.tool.Price && m.Pricing == want.tool.Pricing, "%s: got %v at the end of history, want the current price %s", name, m, want.tool.Price)
	}
	for i, c := range want.changes {
		if i+1 < len(want.changes) && want.changes[i+1].ChangedAt == c.ChangedAt {
			continue // the last change of a day counts
		}
		at := slices.IndexFunc(got.History, func(m moment) bool { return m.At > c.ChangedAt })
		if at < 0 {
			at = len(got.History)
		}
		check.True(t, at != 0 && got.History[at-1].Price == c.Price && got.History[at-1].Pricing == c.Pricing, "%s: got %v in history, want %v on its day", name, got.History, c)
	}
}

// api reads what it serves of any release.
type api struct {
	executor *graph.Executor
	rest     http.Handler
}

func newAPI(t *testing.T, s *store.Store) api {
	t.Helper()
	executor := graphtest.New(graph.Config{Catalog: s, Log: slog.New(slog.DiscardHandler)})
	return api{executor, serving(t, s)}
}

// prices returns what GraphQL shows of a tool as of a release, and checks that REST
// shows the same price history.
func (a api) prices(t *testing.T, slug string, release int) (shown served) {
	t.Helper()
	query := fmt.Sprintf(`query @asOf(release: %d) {tool(slug: %q) {
		priceHistory {changed_at: changedAt pricing price previous_pricing: previousPricing previous_price: previousPrice}
		history {at pricing price}
		changes(types: [price_changed], first: 100) {nodes {before after}}
	}}`, release, slug)
	ctx := auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Developer})
	result := a.executor.Execute(ctx, graph.Request{Query: query})
	var data struct {
		Tool struct {
			PriceHistory []record.PriceChange
			History      []moment
			Changes      struct {
				Nodes []struct{ Before, After record.PriceChange }
			}
		}
	}
	check.OK(t, json.Unmarshal(result.Data, &data), query)
	check.Must(t, len(result.Errors), 0, "%s: %v", query, result.Errors)
	shown.PriceHistory, shown.History = data.Tool.PriceHistory, data.Tool.History
	for _, node := range slices.Backward(data.Tool.Changes.Nodes) { // newest first
		change := node.After
		change.PreviousPricing, change.PreviousPrice = node.Before.Pricing, node.Before.Price
		shown.Events = append(shown.Events, change)
	}
	var body struct {
		PriceHistory []record.PriceChange `json:"price_history"`
	}
	got := get(a.rest, fmt.Sprintf("/api/v1/pricing/%s?as_of=%d", slug, release))
	check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), "%s as of %d", slug, release)
	check.Slices(t, body.PriceHistory, shown.PriceHistory, "%s as of %d: %s", slug, release, got.Body)
	return shown
}

// A tool that was removed returns with its price history even after the history of
// releases was pruned, because the journal has it. One that returned without it, as
// earlier versions imported it, gets it back.
func TestPricesAfterPruning(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		always := feedtest.Tool("always")
		priced := func(price, day string) *record.Tool {
			return feedtest.Tool("a", func(t *record.Tool) { t.Price, t.UpdatedAt = price, day })
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", always, priced("20 €/mois", "2026-11-01")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", always, priced("10 €/mois", "2026-11-02")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", always))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-04", always, feedtest.Tool("b")))
		check.Try(publish.Prune(t.Context(), s, 4)).OK(t)
		back := feedtest.Catalog("2026-11-05", always, priced("10 €/mois", "2026-11-05"))
		feedtest.Publish(t, s, back)
		want := []record.PriceChange{{
			ChangedAt: "2026-11-02", Pricing: "payant", Price: "10 €/mois", PreviousPricing: "payant", PreviousPrice: "20 €/mois",
		}}
		got := newAPI(t, s).prices(t, "a", 5)
		check.Slices(t, got.PriceHistory, want)
		check.Slices(t, got.Events, want)

		s.Write.PriceChange.Delete().ExecX(t.Context())
		check.Try(s.Write.ExecContext(t.Context(), "UPDATE tools SET history_hash = '' WHERE slug = 'a'")).OK(t)
		report := check.Try(publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(string(back))), publish.Options{})).OK(t)
		check.Must(t, report.Release, 6, "%+v", report)
		check.Must(t, report.Tools.Unchanged, 2, "%+v", report)
		got = newAPI(t, s).prices(t, "a", 6)
		check.Slices(t, got.PriceHistory, want)
		check.Slices(t, got.Events, want)
		if report, err := publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(string(back))), publish.Options{}); err != nil || report.Release != 0 {
			t.Errorf("got %+v and %v, want no release", report, err)
		}
	})
}

type object = map[string]any

// replica is a catalog that a client builds from events: the public part of an
// export, with hashes in place of reviews.
type replica struct {
	date    string
	records map[string]object               // by type and slug, without price histories, with names of winners
	touched map[string]bool                 // by an event of the release
	prices  map[string][]record.PriceChange // oldest first; kept when a tool is retired or removed
}

func newReplica() *replica {
	return &replica{records: map[string]object{}, touched: map[string]bool{}, prices: map[string][]record.PriceChange{}}
}

// tool returns an active or a retired tool; nil if there is none.
func (c *replica) tool(slug string) object {
	if active := c.records["tool "+slug]; active != nil {
		return active
	}
	return c.records["cimetiere "+slug]
}

// publicRecords reads a release.
func publicRecords(t *testing.T, s *store.Store, release int) *replica {
	t.Helper()
	var export bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &export, release))
	c := newReplica()
	for line := range bytes.Lines(export.Bytes()) {
		var rec object
		var known struct {
			Type, Slug   string
			Sections     []record.Section
			PriceHistory []record.PriceChange `json:"price_history"`
		}
		check.OK(t, json.Unmarshal(line, &rec))
		check.OK(t, json.Unmarshal(line, &known))
		switch known.Type {
		case "feed":
			c.date = rec["updated_at"].(string)
			continue
		case "tool":
			rec["sections_hash"] = record.SectionsHash(known.Sections)
			delete(rec, "sections")
			delete(rec, "price_history")
			slices.Reverse(known.PriceHistory)
			c.prices[known.Slug] = known.PriceHistory
		case "comparatif":
			if rec["published"] == false {
				continue
			}
		}
		delete(rec, "type")
		c.records[known.Type+" "+known.Slug] = rec
	}
	for key, rec := range c.records {
		if strings.HasPrefix(key, "comparatif ") {
			rec["winner_name"] = c.tool(rec["winner"].(string))["name"]
		}
	}
	return c
}

// asExported changes the state of a record in an event to that in an export.
func asExported(kind string, state object) {
	for name, value := range state { // exports omit defaults
		list, isList := value.([]any)
		fields, isObject := value.(object)
		if value == nil || name == "tier" && value == 3.0 || name == "mainstream" && value == false || isList && len(list) == 0 || isObject && len(fields) == 0 {
			delete(state, name)
		}
	}
	if kind == "comparatif" && state != nil {
		state["winner_name"] = state["winner"]
		for name, slug := range map[string]string{"winner": "winner_slug", "tool_a": "tool_a_slug", "tool_b": "tool_b_slug"} {
			state[name] = state[slug]
			delete(state, slug)
		}
	}
}

// apply changes the replica as an event of /api/v1/changes says, which must have the state
// before and the names of the fields that differ.
func (c *replica) apply(t *testing.T, body json.RawMessage) {
	t.Helper()
	var e struct {
		Type, Slug string
		Data       struct {
			Before, After object
			Fields        []string
			UpdatedAt     string `json:"updated_at"`
		}
	}
	check.OK(t, json.Unmarshal(body, &e))
	before, after := e.Data.Before, e.Data.After
	kind, what, _ := strings.Cut(strings.Replace(e.Type, "retired.", "tool.", 1), ".")
	var differ []string
	for name := range after {
		if !reflect.DeepEqual(before[name], after[name]) {
			differ = append(differ, name)
		}
	}
	asExported(kind, before)
	asExported(kind, after)
	if kind == "category" || kind == "tool" || kind == "comparatif" {
		key, was := kind+" "+e.Slug, c.records[kind+" "+e.Slug]
		if kind == "tool" {
			was = c.tool(e.Slug)
		}
		check.DeepEqual(t, before, was, "before: %s", body)
		check.True(t, !c.touched[key], "got another event of %s, want one: %s", key, body)
		c.touched[key] = true
		if what == "updated" {
			slices.Sort(differ)
			slices.Sort(e.Data.Fields)
			check.Slices(t, e.Data.Fields, differ, "changed fields: %s", body)
			check.True(t, len(differ) > 0, "got no change, want some: %s", body)
		}
	}
	switch e.Type {
	case "catalog.published":
		c.date = e.Data.UpdatedAt
		clear(c.touched)
	case "category.created", "category.updated":
		c.records["category "+e.Slug] = after
	case "category.removed":
		delete(c.records, "category "+e.Slug)
	case "tool.created", "tool.updated":
		delete(c.records, "cimetiere "+e.Slug)
		c.records["tool "+e.Slug] = after
	case "tool.retired", "retired.updated":
		delete(c.records, "tool "+e.Slug)
		c.records["cimetiere "+e.Slug] = after
	case "tool.removed":
		delete(c.records, "tool "+e.Slug)
		delete(c.records, "cimetiere "+e.Slug)
	case "price.changed", "price.backfilled":
		text := func(state object, name string) string { value, _ := state[name].(string); return value }
		change := record.PriceChange{
			ChangedAt: text(after, "changed_at"), Pricing: text(after, "pricing"), Price: text(after, "price"),
			PreviousPricing: text(before, "pricing"), PreviousPrice: text(before, "price"),
		}
		if !slices.Contains(c.prices[e.Slug], change) {
			c.prices[e.Slug] = append(c.prices[e.Slug], change)
		}
	case "comparatif.published", "comparatif.updated":
		c.records["comparatif "+e.Slug] = after
	case "comparatif.removed":
		delete(c.records, "comparatif "+e.Slug)
	case "embeddings.changed": // not part of an export
	default:
		t.Errorf("got an event of type %s, want a known type", e.Type)
	}
}

// String returns the catalog as a feed, with the price history of each active tool.
func (c *replica) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, c.date)
	for _, key := range slices.Sorted(maps.Keys(c.records)) {
		rec := maps.Clone(c.records[key])
		if slug, isTool := strings.CutPrefix(key, "tool "); isTool {
			history := slices.Clone(c.prices[slug])
			slices.Reverse(history)
			slices.SortStableFunc(history, func(a, b record.PriceChange) int { return cmp.Compare(b.ChangedAt, a.ChangedAt) })
			rec["price_history"] = history
		}
		line, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(&out, key, string(line))
	}
	return out.String()
}

// A client that applies the events of /api/v1/changes to the first release has every
// later release, with all public fields. Reviews are known by their hash, and
// unpublished comparisons are not public. The events of the first release make it
// from nothing.
func TestEventsRebuildEveryRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		random := feedtest.NewTangled(testkit.SeedOr(t, 35))
		var last int
		for range 120 {
			last = max(last, feedtest.Publish(t, s, random.Next()))
		}
		api := newAPI(t, s)
		built, fromNothing := publicRecords(t, s, 1), newReplica()
		release, seen := 0, map[string]int{}
		for after, more := "", true; more; {
			var page struct {
				Data []json.RawMessage
				Next string
			}
			got := get(api.rest, "/api/v1/changes?limit=200"+after)
			check.OK(t, json.Unmarshal(got.Body.Bytes(), &page))
			for _, body := range page.Data {
				var e struct {
					Type    string
					Release int
					Data    struct{ Fields []string }
				}
				check.OK(t, json.Unmarshal(body, &e))
				seen[e.Type]++
				if len(e.Data.Fields) == 1 {
					seen[e.Type+" "+e.Data.Fields[0]]++
				}
				fromNothing.apply(t, body)
				if e.Release > 1 {
					built.apply(t, body)
				}
				if e.Type != "catalog.published" {
					continue
				}
				release = e.Release
				want := publicRecords(t, s, release).String()
				for name, got := range map[string]string{"the first release": built.String(), "nothing": fromNothing.String()} {
					check.Must(t, got, want, "release %d from %s", release, name)
				}
			}
			after, more = "&after="+page.Next, len(page.Data) > 0
		}
		check.Equal(t, release, last)
		check.True(t, last >= 35, "got events up to release %d, want %d, at least 35", release, last)
		for _, event := range []string{
			"category.created", "category.updated", "category.removed", "tool.created", "tool.updated", "tool.retired", "tool.removed",
			"retired.updated", "price.changed", "price.backfilled", "comparatif.published", "comparatif.updated", "comparatif.removed",
			"category.updated translations", "tool.updated translations", "tool.updated sources", "comparatif.updated translations",
		} {
			check.True(t, seen[event] >= 3, "%s: got %d events, want at least 3", event, seen[event])
		}
	})
}
