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
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// An event shows a record with the fields and the order of the REST API, before
// and after the release, and fields that REST does not have. An unchanged record has
// no event, unless REST shows it differently.
func TestEventsMatchREST(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		score, avis := 6.0, "https://palmares.example/avis/a"
		a, v, b := feedtest.Tool("a"), feedtest.Tool("v"), feedtest.Tool("b")
		old := feedtest.Retired("old")
		duel, other, hidden := feedtest.Comparison("duel", "a", "v"), feedtest.Comparison("other", "a", "v"), feedtest.Comparison("hidden", "a", "v")
		other.Winner, hidden.Published = "v", false
		records := map[string]any{"a": a, "v": v, "b": b, "old": old, "duel": duel, "other": other, "hidden": hidden}
		var last int
		was, wasRecord := map[string]string{}, map[string]string{}
		for _, step := range []struct {
			name   string
			change func()
		}{
			{"the first import", func() {}},
			{"name", func() { b.Name = "Autre" }},
			{"hostile strings", func() {
				b.Name, b.Tagline, duel.Title, old.Note = feedtest.Hostile, feedtest.Hostile, feedtest.Hostile, feedtest.Hostile
			}},
			{"domain", func() { a.Domain = "other.example" }},
			{"category", func() { a.Category = "voix" }},
			{"icp", func() { a.ICP = "vibe-coder" }},
			{"pricing", func() { a.Pricing = "freemium" }},
			{"price", func() { a.Price = "0 €/mois" }},
			{"score", func() { a.Score = &score }},
			{"no score", func() { a.Score = nil }},
			{"verifiability", func() { a.Verifiability = &score }},
			{"canonical_url", func() { a.CanonicalURL += "?x=<&>" }},
			{"avis_url", func() { a.AvisURL = &avis }},
			{"alternatives_url", func() { a.AlternativesURL += "/" }},
			{"updated_at", func() { a.UpdatedAt = "2026-11-02" }},
			{"tier", func() { a.Tier = 2 }},
			{"mainstream", func() { a.Mainstream = true }},
			{"obsolescence", func() { a.Obsolescence = &score }},
			{"sections", func() { a.Sections = nil }},
			{"price_history", func() {
				a.PriceHistory = []record.PriceChange{{ChangedAt: "2025-01-01", Pricing: "payant", Price: "9 €/mois", PreviousPricing: "payant", PreviousPrice: "8 €/mois"}}
			}},
			{"a retired tool's category", func() { old.Category = "voix" }},
			{"its score", func() { old.Score = &score }},
			{"its reason", func() { old.Reason = "acquis" }},
			{"its date", func() { old.RetiredAt = "2026-06-02" }},
			{"its note", func() { old.Note = "Acheté." }},
			{"its name", func() { old.Name = "Vieux" }},
			{"a comparison's title", func() { duel.Title = "Qui donc ?" }},
			{"its winner", func() { duel.Winner = "v" }},
			{"its winner_note", func() { duel.WinnerNote = "Plus beau." }},
			{"its tool", func() { duel.ToolA = "b" }},
			{"its own date", func() { duel.UpdatedAt = "2026-10-02" }},
			{"its URL", func() { duel.CanonicalURL += "/" }},
			{"its winner's name", func() { v.Name = "Nouveau" }},
			{"its winner's name and its own title", func() { v.Name, duel.Title = "Dernier", "Et alors ?" }},
			{"two tools of the same name", func() { b.Name = v.Name }},
			{"a winner of the same name", func() { duel.Winner = "b" }},
			{"the former winner", func() { duel.Winner = "v" }},
			{"another winner, under a new name", func() { duel.Winner, b.Name = "b", "B" }},
			{"hidden, its winner renamed", func() { duel.Published, b.Name = false, "Bé" }},
			{"still hidden, its winner renamed", func() { b.Name = "Bê" }},
			{"shown again", func() { duel.Published = true }},
			{"its winner retired, under a new name", func() {
				records["b"] = &record.Retired{Slug: "b", Name: "Feu B", Category: "voix", Reason: "mort", RetiredAt: "2026-11-03", Note: "Fermé."}
			}},
			{"and back", func() { b.Name, records["b"] = "B vit", b }},
			{"removed with its winner", func() { delete(records, "duel"); delete(records, "b"); a.Name = "Un autre" }},
		} {
			step.change()
			feedtest.Publish(t, s, feedtest.Catalog("2026-11-05", slices.Collect(maps.Values(records))...))
			is, isRecord := shownByREST(t, s), publicRecords(t, s, 0).lines()
			events := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 1000, After: last})).OK(t)
			seen := map[string]bool{}
			for _, event := range events {
				last = event.Number
				noun, _, _ := strings.Cut(strings.Replace(event.Type, "retired.", "tool.", 1), ".")
				if noun != "tool" && noun != "comparatif" {
					continue
				}
				key := noun + " " + event.Slug
				check.True(t, !seen[key], "%s: got two events of %s, want one", step.name, key)
				seen[key] = true
				if got := [2]string{restOnly(t, event.Before, was[key]), restOnly(t, event.After, is[key])}; got != [2]string{was[key], is[key]} {
					t.Errorf("%s: %s of %s\ngot  %s\n  to %s\nwant %s\n  to %s, as in REST", step.name, event.Type, key, got[0], got[1], was[key], is[key])
				}
				if strings.HasSuffix(event.Type, ".updated") {
					slices.Sort(event.Fields)
					want := differing(t, string(event.Before), string(event.After))
					check.Slices(t, event.Fields, want, "%s: changed fields of %s", step.name, key)
					check.True(t, len(want) != 0, "%s: changed fields of %s: got %v, want %v", step.name, key, event.Fields, want)
				}
			}
			for key := range merged(was, is) {
				check.Equal(t, seen[key], (was[key] != is[key] || wasRecord[key] != isRecord[key]), "%s: %s", step.name, key)
			}
			was, wasRecord = is, isRecord
		}
	})
}

// shownByREST returns every tool and comparison as the REST API shows it, keyed
// by "tool" or "comparatif" and slug.
func shownByREST(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	api := serving(t, s)
	shown := map[string]string{}
	list := func(path, noun string) {
		var all struct{ Data []json.RawMessage }
		got := get(api, "/api/v1/"+path)
		check.Must(t, got.Code, 200, "%s: %s", path, got.Body)
		check.OK(t, json.Unmarshal(got.Body.Bytes(), &all), path)
		for _, item := range all.Data {
			var known struct{ Slug string }
			check.OK(t, json.Unmarshal(item, &known))
			shown[noun+" "+known.Slug] = compact(t, item)
		}
	}
	list("tools?limit=200", "tool")
	for key := range shown {
		_, slug, _ := strings.Cut(key, " ")
		shown[key] = compact(t, get(api, "/api/v1/tools/"+slug).Body.Bytes())
	}
	list("cimetiere?limit=200", "tool")
	list("comparatifs?limit=200", "comparatif")
	return shown
}

// restOnly returns the members of an event's state that REST has, in the same order.
func restOnly(t *testing.T, state []byte, shown string) string {
	t.Helper()
	if state == nil {
		return ""
	}
	var known map[string]json.RawMessage
	if shown != "" {
		check.OK(t, json.Unmarshal([]byte(shown), &known))
	}
	decoder, members := json.NewDecoder(bytes.NewReader(state)), []string{}
	check.Try(decoder.Token()).OK(t)
	for decoder.More() {
		name := check.Try(decoder.Token()).OK(t)
		var value json.RawMessage
		check.OK(t, decoder.Decode(&value))
		if _, ok := known[name.(string)]; ok {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return compact(t, []byte("{"+strings.Join(members, ",")+"}"))
}

// compact removes differences in formatting, but not in the order of fields.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	if text == nil {
		return ""
	}
	var out bytes.Buffer
	check.OK(t, json.Compact(&out, text), "for %s", string(text))
	return strings.NewReplacer(`\u001F`, `\u001f`).Replace(out.String())
}

// differing returns the names of the fields that differ, in alphabetical order.
func differing(t *testing.T, before, after string) (names []string) {
	t.Helper()
	var was, is map[string]json.RawMessage
	check.OK(t, json.Unmarshal([]byte(before), &was))
	check.OK(t, json.Unmarshal([]byte(after), &is))
	for name := range merged(was, is) {
		if string(was[name]) != string(is[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

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
	records map[string]object               // by type and slug, without price histories
	prices  map[string][]record.PriceChange // oldest first; kept when a tool is retired or removed
}

// publicRecords reads a release, the newest if it is 0.
func publicRecords(t *testing.T, s *store.Store, release int) *replica {
	t.Helper()
	var export bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &export, release))
	c := &replica{records: map[string]object{}, prices: map[string][]record.PriceChange{}}
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
	return c
}

// apply changes the replica as an event of /api/v1/changes says.
func (c *replica) apply(t *testing.T, body json.RawMessage) {
	t.Helper()
	var e struct {
		Type, Slug string
		Data       struct {
			Before, After object
			UpdatedAt     string `json:"updated_at"`
		}
	}
	check.OK(t, json.Unmarshal(body, &e))
	after := e.Data.After
	for name, value := range after { // exports omit defaults
		list, isList := value.([]any)
		fields, isObject := value.(object)
		if value == nil || name == "tier" && value == 3.0 || name == "mainstream" && value == false || isList && len(list) == 0 || isObject && len(fields) == 0 {
			delete(after, name)
		}
	}
	switch e.Type {
	case "catalog.published":
		c.date = e.Data.UpdatedAt
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
			PreviousPricing: text(e.Data.Before, "pricing"), PreviousPrice: text(e.Data.Before, "price"),
		}
		if !slices.Contains(c.prices[e.Slug], change) {
			c.prices[e.Slug] = append(c.prices[e.Slug], change)
		}
	case "comparatif.published", "comparatif.updated":
		for name, slug := range map[string]string{"winner": "winner_slug", "tool_a": "tool_a_slug", "tool_b": "tool_b_slug"} {
			after[name] = after[slug]
			delete(after, slug)
		}
		c.records["comparatif "+e.Slug] = after
	case "comparatif.removed":
		delete(c.records, "comparatif "+e.Slug)
	case "embeddings.changed": // not part of an export
	default:
		t.Errorf("got an event of type %s, want a known type", e.Type)
	}
}

// lines returns the records as JSON, by "tool" or "comparatif" and slug.
func (c *replica) lines() map[string]string {
	lines := map[string]string{}
	for key, rec := range c.records {
		line, err := json.Marshal(rec)
		if err != nil {
			panic(err) // it was read from JSON
		}
		if !strings.HasPrefix(key, "category ") {
			lines[strings.Replace(key, "cimetiere ", "tool ", 1)] = string(line)
		}
	}
	return lines
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
		for range 40 {
			last = max(last, feedtest.Publish(t, s, random.Next()))
		}
		api := newAPI(t, s)
		built, fromNothing := publicRecords(t, s, 1), &replica{records: map[string]object{}, prices: map[string][]record.PriceChange{}}
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
