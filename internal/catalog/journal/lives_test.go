package journal_test

import (
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
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
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
		return newRetired(slug, "Fermé.")
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
			report, err := publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(string(feedtest.Catalog(day.Format(time.DateOnly), records...)))), publish.Options{Force: true})
			check.OK(t, err)
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
		if i > 0 && (c.PreviousPrice != got.Events[i-1].Price || c.PreviousPricing != got.Events[i-1].Pricing) {
			t.Errorf("%s: got %v after %v, want one that continues it", name, c, got.Events[i-1])
		}
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
		if i == len(got.History)-1 && (m.Price != want.tool.Price || m.Pricing != want.tool.Pricing) {
			t.Errorf("%s: got %v at the end of history, want the current price %s", name, m, want.tool.Price)
		}
	}
	for i, c := range want.changes {
		if i+1 < len(want.changes) && want.changes[i+1].ChangedAt == c.ChangedAt {
			continue // the last change of a day counts
		}
		at := slices.IndexFunc(got.History, func(m moment) bool { return m.At > c.ChangedAt })
		if at < 0 {
			at = len(got.History)
		}
		if at == 0 || got.History[at-1].Price != c.Price || got.History[at-1].Pricing != c.Pricing {
			t.Errorf("%s: got %v in history, want %v on its day", name, got.History, c)
		}
	}
}

// api reads what it serves of any release.
type api struct {
	executor *graph.Executor
	rest     http.Handler
}

func newAPI(t *testing.T, s *store.Store) api {
	t.Helper()
	silent := slog.New(slog.DiscardHandler)
	executor := graphtest.New(graph.Config{Catalog: s, Log: silent})
	handler, err := rest.NewHandler(rest.Config{}, executor, cache.New(1<<20, nil, silent))
	check.OK(t, err)
	return api{executor, handler}
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
	got := serve(a.rest, http.MethodGet, fmt.Sprintf("/api/v1/pricing/%s?as_of=%d", slug, release))
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
		if _, err := publish.Prune(t.Context(), s, 4); err != nil {
			t.Fatal(err)
		}
		back := feedtest.Catalog("2026-11-05", always, priced("10 €/mois", "2026-11-05"))
		feedtest.Publish(t, s, back)
		want := []record.PriceChange{{
			ChangedAt: "2026-11-02", Pricing: "payant", Price: "10 €/mois", PreviousPricing: "payant", PreviousPrice: "20 €/mois",
		}}
		got := newAPI(t, s).prices(t, "a", 5)
		check.Slices(t, got.PriceHistory, want)
		check.Slices(t, got.Events, want)

		s.Write.PriceChange.Delete().ExecX(t.Context())
		_, err := s.Write.ExecContext(t.Context(), "UPDATE tools SET history_hash = '' WHERE slug = 'a'")
		check.OK(t, err)
		report, err := publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(string(back))), publish.Options{})
		check.OK(t, err)
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
