package release_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

var silent = slog.New(slog.DiscardHandler)

func publishRevision(t testing.TB, s *store.Store, revision int) {
	t.Helper()
	feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 150, Seed: 4, Revision: revision}))
}

func newCatalog(db release.Database) *release.Catalog {
	return release.NewCatalog(db, silent, 1<<20, nil)
}

func load(t testing.TB, c *release.Catalog) *release.Release {
	t.Helper()
	return check.Try(c.Load(t.Context())).OK(t)
}

// scan is a release as a naive program reads it: row by row, with one query for each
// table.
type scan struct {
	tools       []*ent.Tool
	categories  []*ent.Category
	comparisons []*ent.Comparison
	prices      map[string][]*ent.PriceChange
}

func scanRelease(t testing.TB, s *store.Store, number int) (of scan) {
	t.Helper()
	of.tools = check.Try(s.Read.Tool.Query().Where(store.Tools.At(number)).All(t.Context())).OK(t)
	of.categories = check.Try(s.Read.Category.Query().Where(store.Categories.At(number)).All(t.Context())).OK(t)
	of.comparisons = check.Try(s.Read.Comparison.Query().Where(store.Comparisons.At(number), comparison.Published(true)).All(t.Context())).OK(t)
	prices := check.Try(s.Read.PriceChange.Query().Where(store.PriceChanges.At(number)).All(t.Context())).OK(t)
	of.prices = map[string][]*ent.PriceChange{}
	for _, p := range prices {
		of.prices[p.ToolSlug] = append(of.prices[p.ToolSlug], p)
	}
	slices.SortFunc(of.tools, func(a, b *ent.Tool) int { return strings.Compare(a.ID, b.ID) })
	return of
}

// active returns the slugs of the active tools that match, in an order.
func (s scan) active(matches func(*ent.Tool) bool, compare func(a, b *ent.Tool) int) (slugs []string) {
	found := slices.Clone(s.tools)
	slices.SortStableFunc(found, compare) // by slug before
	for _, t := range found {
		if t.RetiredAt == "" && matches(t) {
			slugs = append(slugs, t.ID)
		}
	}
	return slugs
}

func slugsOf(tools []*release.Tool) (slugs []string) {
	for _, t := range tools {
		slugs = append(slugs, t.Slug)
	}
	return slugs
}

// check compares everything in a release with a scan of its rows.
func checkRelease(t testing.TB, s *store.Store, r *release.Release) {
	t.Helper()
	rows := scanRelease(t, s, r.Number())
	if len(r.Tools) != len(rows.tools) || len(r.Categories) != len(rows.categories) || len(r.Comparisons) != len(rows.comparisons) {
		t.Fatalf("release %d: got %d tools, %d categories and %d comparisons, want %d, %d and %d", r.Number(),
			len(r.Tools), len(r.Categories), len(r.Comparisons), len(rows.tools), len(rows.categories), len(rows.comparisons))
	}
	for i, row := range rows.tools {
		got := r.Tools[i]
		want := fmt.Sprint(row.ID, row.Name, row.CategorySlug, row.Score == nil, row.Tagline, row.RetiredAt, row.RetiredNote, row.Price, row.InEmbeddings, row.SinceRelease)
		if text := fmt.Sprint(got.Slug, got.Name, got.Category, math.IsNaN(got.Score), got.Tagline, got.RetiredAt, got.RetiredNote, got.Price, got.InEmbeddings, got.Since); text != want {
			t.Errorf("release %d: got %s, want %s", r.Number(), text, want)
		}
		prices := rows.prices[row.ID]
		slices.SortFunc(prices, func(a, b *ent.PriceChange) int {
			return cmp.Or(strings.Compare(b.ChangedAt, a.ChangedAt), b.ID-a.ID)
		})
		var days, wantDays []string
		for _, p := range r.PricesOf(row.ID) {
			days = append(days, p.ChangedAt+p.PreviousPrice+p.Price)
		}
		for _, p := range prices {
			wantDays = append(wantDays, p.ChangedAt+p.PreviousPrice+p.Price)
		}
		if !slices.Equal(days, wantDays) {
			t.Errorf("release %d, %s: got prices %q, want %q", r.Number(), row.ID, days, wantDays)
		}
	}
	for _, row := range rows.categories {
		if c := r.Category(row.ID); c == nil || c.Label != row.Label || c.ToolCount != row.ToolCount {
			t.Errorf("release %d: got category %+v, want %+v", r.Number(), c, row)
		}
	}
	slices.SortFunc(rows.comparisons, func(a, b *ent.Comparison) int {
		return cmp.Or(strings.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.ID, b.ID))
	})
	for i, row := range rows.comparisons {
		c := r.Comparisons[i]
		if c.Slug != row.ID || c.A != r.Tool(row.ToolASlug) || c.B != r.Tool(row.ToolBSlug) || c.Best != r.Tool(row.WinnerSlug) || !slices.Contains(r.ComparisonsOf(c.A), c) {
			t.Errorf("release %d: got comparison %+v, want %+v", r.Number(), c, row)
		}
	}
	checkLists(t, r, rows)
}

// checkLists compares filters and orders with a scan.
func checkLists(t testing.TB, r *release.Release, rows scan) {
	t.Helper()
	number := func(n *float64) float64 { // missing ones last
		if n == nil {
			return math.Inf(1)
		}
		return *n
	}
	lowest := func(n *float64) float64 { // missing ones last, in descending order
		if n == nil {
			return math.Inf(-1)
		}
		return *n
	}
	monthly := func(t *ent.Tool) float64 {
		price := pricing.Monthly(t.PriceAmount, pricing.Period(t.PricePeriod))
		if math.IsNaN(price) {
			return math.Inf(1)
		}
		return price
	}
	value := func(t *ent.Tool) float64 { // missing ones last, in descending order
		if price := monthly(t); t.Score != nil && price > 0 && t.Pricing != "gratuit" && !math.IsInf(price, 1) {
			return *t.Score / price
		}
		return math.Inf(-1)
	}
	atLeast := 3.5
	for _, c := range []struct {
		order     string
		condition release.Condition
		matches   func(*ent.Tool) bool
		compare   func(a, b *ent.Tool) int
	}{
		{"score_asc", release.AtLeast("score", atLeast), func(t *ent.Tool) bool { return t.Score != nil && *t.Score >= atLeast },
			func(a, b *ent.Tool) int { return cmp.Compare(number(a.Score), number(b.Score)) }},
		{"score_desc", release.AtMost("score", atLeast), func(t *ent.Tool) bool { return t.Score != nil && *t.Score <= atLeast },
			func(a, b *ent.Tool) int { return cmp.Compare(lowest(b.Score), lowest(a.Score)) }},
		{"score_asc", release.AtLeast("score", 11), func(*ent.Tool) bool { return false },
			func(a, b *ent.Tool) int { return cmp.Compare(number(a.Score), number(b.Score)) }},
		{"monthly_price_asc", release.AtLeast("monthlyPrice", 0), func(t *ent.Tool) bool { return !math.IsInf(monthly(t), 1) },
			func(a, b *ent.Tool) int { return cmp.Compare(monthly(a), monthly(b)) }},
		{"value_desc", release.AtLeast("value", 0.2), func(t *ent.Tool) bool { return value(t) >= 0.2 },
			func(a, b *ent.Tool) int { return cmp.Compare(value(b), value(a)) }},
		{"name_desc", release.OneOf("category", []string{rows.categories[0].ID, "nowhere"}), func(t *ent.Tool) bool { return t.CategorySlug == rows.categories[0].ID },
			func(a, b *ent.Tool) int { return strings.Compare(b.NameKey, a.NameKey) }},
		{"price_desc", release.AtMost("price", 30), func(t *ent.Tool) bool { return t.PriceAmount <= 30 },
			func(a, b *ent.Tool) int { return cmp.Compare(b.PriceAmount, a.PriceAmount) }},
		{"updated_asc", release.Where(func(t *release.Tool) bool { return t.InEmbeddings }), func(t *ent.Tool) bool { return t.InEmbeddings },
			func(a, b *ent.Tool) int { return strings.Compare(a.UpdatedAt, b.UpdatedAt) }},
		{"updated_desc", release.OneOf("tier", []string{"1", "2"}), func(t *ent.Tool) bool { return t.Tier <= 2 },
			func(a, b *ent.Tool) int { return strings.Compare(b.UpdatedAt, a.UpdatedAt) }},
		{"name_desc", r.PriceRose(1, "2024-07-01"), func(t *ent.Tool) bool {
			return slices.ContainsFunc(rows.prices[t.ID], func(c *ent.PriceChange) bool {
				direction, _ := pricing.Compare(pricing.Read(c.PreviousPrice), pricing.Read(c.Price))
				return direction == pricing.Up && c.ChangedAt >= "2024-07-01"
			})
		}, func(a, b *ent.Tool) int { return strings.Compare(b.NameKey, a.NameKey) }},
		{"price_desc", release.AtMost("monthlyCost", 12.5), func(t *ent.Tool) bool { return t.Pricing == "gratuit" || t.PriceAmount == 0 || monthly(t) <= 12.5 },
			func(a, b *ent.Tool) int { return cmp.Compare(b.PriceAmount, a.PriceAmount) }},
	} {
		order, ok := release.OrderNamed(c.order)
		check.MustTrue(t, ok, "got no order %s, want one", c.order)
		all := rows.active(func(*ent.Tool) bool { return true }, c.compare)
		if got := slugsOf(r.Sorted(order)); !slices.Equal(got, all) {
			t.Errorf("release %d, %s:\ngot  %q\nwant %q", r.Number(), c.order, got, all)
		}
		got := r.Matching(order, release.Filter{c.condition})
		if want := rows.active(c.matches, c.compare); !slices.Equal(slugsOf(got), want) {
			t.Errorf("release %d, %s, filtered:\ngot  %q\nwant %q", r.Number(), c.order, slugsOf(got), want)
		}
		// Each position finds its place again, in the list with or without it.
		places := order.Places()
		for i, tool := range got {
			compare, ok := places.Seek(c.order, places.Cursor(c.order, tool))
			if !ok || compare(tool) != 0 || i > 0 && compare(got[i-1]) >= 0 || i+1 < len(got) && compare(got[i+1]) <= 0 {
				t.Fatalf("%s: got a position of %s that is not between its neighbors", c.order, tool.Slug)
			}
		}
	}
}

// Releases that are loaded one after the other, or all at once, and earlier ones
// derived from any of them have the same content as the tables.
func TestReleasesMatchTables(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		followed := newCatalog(s)
		r := load(t, followed)
		check.Equal(t, r.Info, nil, "before the first import")
		check.Equal(t, len(r.Tools), 0, "before the first import")
		check.Equal(t, r.Number(), 0, "before the first import")
		for revision := range 5 {
			if publishRevision(t, s, revision*revision); revision == 2 {
				publishRevision(t, s, 40) // two releases at once
			}
			for _, c := range []*release.Catalog{followed, newCatalog(s)} {
				newest := load(t, c)
				checkRelease(t, s, newest)
				for _, info := range newest.Readable()[1:] {
					checkRelease(t, s, c.Earlier(newest, info))
				}
			}
		}
		check.Try(publish.Prune(t.Context(), s, 5)).OK(t)
		newest := load(t, followed)
		check.Equal(t, len(newest.Readable()), 2, "after pruning: releases that can be read")
		checkRelease(t, s, newest)
		checkRelease(t, s, followed.Earlier(newest, newest.Readable()[1]))
	})
}

// The memory that is reserved is that of the newest release, also after an operation has
// derived an earlier release from a superseded one.
func TestReservedMemoryIsThatOfTheNewestRelease(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishRevision(t, s, 0)
	publishRevision(t, s, 1)
	var reserved int64
	c := release.NewCatalog(s, silent, 1<<20, func(bytes int64) { reserved = bytes })
	superseded := load(t, c)
	publishRevision(t, s, 2)
	newest := load(t, c)
	want := reserved
	c.Earlier(superseded, superseded.All[1])
	check.Equal(t, reserved, want, "bytes reserved after reading a superseded release")
	c.Earlier(newest, newest.All[1])
	check.True(t, reserved > want, "got %d bytes reserved with an earlier release, want more than %d", reserved, want)
}

// After a backup from before the history was pruned is restored, all its releases can be
// read.
func TestPrunedReleasesAreRestored(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		before := check.Try(store.Open(t.Context(), cfg)).OK(t)
		check.Try(before.Migrate(t.Context())).OK(t)
		for revision := range 3 {
			publishRevision(t, before, revision)
		}
		check.OK(t, before.Close())
		backup, pruned := testkit.Copy(t, cfg), testkit.Open(t, cfg)
		check.Try(publish.Prune(t.Context(), pruned, 3)).OK(t)
		d := &lateDatabase{Store: pruned}
		c := newCatalog(d)
		load(t, c)
		d.Store = testkit.Open(t, backup)
		newest := load(t, c)
		check.Must(t, len(newest.Readable()), 3, "releases that can be read")
		for _, info := range newest.Readable()[1:] {
			checkRelease(t, d.Store, c.Earlier(newest, info))
		}
	})
}

// A reader that finds out that a backup was restored announces its release before it reads
// it, so that responses from caches do not follow with the release that was lost.
func TestRestoredReleaseIsAnnouncedBeforeItIsRead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		cfg.PollEvery = time.Hour
		before := check.Try(store.Open(t.Context(), cfg)).OK(t)
		check.Try(before.Migrate(t.Context())).OK(t)
		publishRevision(t, before, 0)
		check.OK(t, before.Close())
		backup, lost := testkit.Copy(t, cfg), testkit.Open(t, cfg)
		publishRevision(t, lost, 1)
		d := &lateDatabase{Store: lost}
		c, happened := newCatalog(d), make(chan string, 10)
		go c.Follow(t.Context(), func(r *ent.Release) bool { happened <- fmt.Sprint("announced ", r.ID); return true })
		got := []string{<-happened}
		d.Store = testkit.Open(t, backup)
		check.OK(t, c.Read(t.Context(), release.AsOf{}, func(r *release.Release, _ int) (bool, error) {
			happened <- fmt.Sprint("read ", r.Number())
			return true, nil
		}))
		for len(happened) > 0 {
			got = append(got, <-happened)
		}
		check.Slices(t, got, []string{"announced 2", "read 2", "announced 1", "read 1"})
	})
}

// lateDatabase returns the release that was the newest when a load started only after
// a newer one was loaded.
type lateDatabase struct {
	*store.Store
	before func()
}

func (d *lateDatabase) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	release, err := d.Store.CurrentRelease(ctx)
	if before := d.before; before != nil {
		d.before = nil
		before()
	}
	return release, err
}

// A load that starts before another one and ends after it does not revert the
// release, nor the history after pruning.
func TestLateLoadDoesNotRevertRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishRevision(t, s, 0)
		publishRevision(t, s, 1)
		d := &lateDatabase{Store: s}
		c := newCatalog(d)
		load(t, c)
		d.before = func() {
			publishRevision(t, s, 2)
			load(t, c)
		}
		check.Equal(t, load(t, c).Number(), 3, "release")
		d.before = func() {
			check.Try(publish.Prune(t.Context(), s, 3)).OK(t)
			load(t, c)
		}
		check.Equal(t, len(load(t, c).Readable()), 1, "releases that can be read after pruning")
	})
}

// While a release is being loaded, or cannot be, the previous one is served. Each one
// is loaded once, however many ask for it, and none is lost.
func TestReleasesAreLoadedInTheBackground(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		var slow, failing atomic.Bool
		var loads atomic.Int64
		blocked := make(chan struct{})
		cfg.OnStatement = func(_ context.Context, pool, statement string) func(error) {
			if pool == "reader" && strings.Contains(statement, "tools_versions") {
				if loads.Add(1); slow.Load() {
					<-blocked
				}
			}
			return func(error) {}
		}
		s := testkit.Open(t, cfg)
		publishRevision(t, s, 0)
		c := newCatalog(s)
		published := make(chan int, 100)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Follow(ctx, func(release *ent.Release) bool {
				if failing.CompareAndSwap(true, false) {
					return false // it is called again
				}
				published <- release.ID
				return true
			})
		}()
		defer func() { stop(); <-ended }()
		check.Must(t, <-published, 1, "release")
		for release := 2; release <= 5; release++ {
			loads.Store(0)
			slow.Store(true)
			failing.Store(release == 4)
			publishRevision(t, s, release)
			wait.Until(t, "the release is being loaded", func() bool { return loads.Load() > 0 })
			for range 3 {
				newest := check.Try(c.Newest(t.Context())).OK(t, "while release %d is being loaded", release)
				check.Equal(t, newest.Number(), release-1, "while release %d is being loaded: want the previous one", release)
			}
			slow.Store(false)
			blocked <- struct{}{}
			check.Equal(t, <-published, release, "release published")
			check.Equal(t, loads.Load(), 1, "release %d: loads", release)
		}
	})
}

func TestDerivedValues(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishRevision(t, s, 0)
	r := load(t, newCatalog(s))
	type count int
	derivations := 0
	for range 3 {
		check.Equal(t, int(release.Derived(r, func(r *release.Release) count { derivations++; return count(len(r.Tools)) })), len(r.Tools))
		check.Equal(t, derivations, 1)
	}
	wanted := r.Tools[rand.IntN(len(r.Tools))]
	typo := wanted.Slug[:1] + "x" + wanted.Slug[1:]
	if got := r.SimilarTools(typo, 5); !slices.Contains(got, wanted) {
		t.Errorf("%s: got %q, want %s among them", typo, slugsOf(got), wanted.Slug)
	}
}

// Comparing more names would take too long. The names here are nil, so that comparing
// them would fail.
func TestNamesOfLargeCatalogsAreNotCompared(t *testing.T) {
	const limit = 20_000
	r := &release.Release{Tools: make([]*release.Tool, limit+1), Comparisons: make([]*release.Comparison, limit+1)}
	tools, tool, comparison := r.SimilarTools("plum", 5), r.NearestTool("plum"), r.NearestComparison("a-vs-b")
	check.True(t, tools == nil, "got %v, %q and %q, want none", tools, tool, comparison)
	check.Equal(t, tool, "", tools)
	check.Equal(t, comparison, "", tools)
}

// Values of cursors that callers can change never match an order by accident.
func TestInvalidCursors(t *testing.T) {
	for _, cursor := range []string{
		`{"l": "score_asc", "p": {}}`, `{"l": "score_desc", "p": {"n": "1"}}`, `{"l": "score_desc", "p": {"s": 1}}`, `{"l": "score_desc", "p": {"t": []}}`,
		`{"l": "score_desc", "p": {"m": 1}}`, `{"l": "score_desc", "p": {"r": 0.5}}`, `{"l": "score_desc", "p": [8.5, "a"]}`, `{"l": "score_desc", "p": {"s": "\u0000"}}`, `{`,
	} {
		_, ok := release.ByScore.Places().Seek("score_desc", base64.RawURLEncoding.EncodeToString([]byte(cursor)))
		check.True(t, !ok, "got %s accepted, want it rejected", cursor)
	}
	_, ok := release.OrderNamed("verifiability_asc")
	check.True(t, !ok, "got an order by verifiability, want none: it is not declared as sorted")
}

// Words without a tool are not found.
func TestSearchIgnoresWordsWithoutTool(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishRevision(t, s, 0)
		check.Try(s.Write.ExecContext(t.Context(), "UPDATE tool_search SET slug = 'no-such-tool' WHERE id = 1")).OK(t)
		r := load(t, newCatalog(s))
		found := check.Try(r.Search("a", "")).OK(t)
		check.True(t, len(found) != 0, "got %d tools, want some", len(found))
		for tool := range found {
			check.True(t, tool != nil, "got a match without a tool, want none")
		}
	})
}

// Searches with few and with many matches have the same order: by rank, then by score.
func TestOrderByRelevance(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishRevision(t, s, 0)
	r := load(t, newCatalog(s))
	byScore := release.ByScore.Comparer()
	few, many := 0, 0
	queries := []string{"a", "e", "l", "p"}
	for _, tool := range r.Tools {
		queries = append(queries, tool.NameKey)
	}
	for _, query := range queries {
		ranks := check.Try(r.Search(query, "")).OK(t)
		want := slices.SortedFunc(maps.Keys(ranks), func(a, b *release.Tool) int { return cmp.Or(ranks[a]-ranks[b], byScore(a, b)) })
		matches := release.Where(func(t *release.Tool) bool { _, ok := ranks[t]; return ok })
		check.Slices(t, slugsOf(r.ByRelevance(ranks, release.Filter{matches})), slugsOf(want), query)
		if len(ranks)*16 < len(r.Tools) {
			few++
		} else {
			many++
		}
	}
	check.True(t, few != 0 && many != 0, "got %d searches with few matches and %d with many, want both", few, many)
}

// naiveRank counts the active tools with a higher score, and all with a score.
func naiveRank(rows []*ent.Tool, slug string, inCategory bool) release.Rank {
	var own *ent.Tool
	for _, row := range rows {
		if row.ID == slug && row.RetiredAt == "" && row.Score != nil {
			own = row
		}
	}
	if own == nil {
		return release.Rank{}
	}
	rank := release.Rank{Position: 1}
	for _, row := range rows {
		if row.RetiredAt != "" || row.Score == nil || inCategory && row.CategorySlug != own.CategorySlug {
			continue
		}
		rank.Of++
		if *row.Score > *own.Score {
			rank.Position++
		}
	}
	return rank
}

func TestRanksMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	c := growing(t, s)
	newest := load(t, c)
	for _, info := range newest.All {
		r := newest
		if info != newest.Info {
			r = c.Earlier(newest, info)
		}
		now, before := scanRelease(t, s, info.ID).tools, []*ent.Tool(nil)
		if info.ID > r.HistoryFrom() {
			before = scanRelease(t, s, info.ID-1).tools
		}
		positions := map[int]bool{}
		ranked := 0
		for _, tool := range r.Tools {
			for _, inCategory := range []bool{false, true} {
				check.Equal(t, r.Rank(tool, inCategory), naiveRank(now, tool.Slug, inCategory), "rank of %s", tool.Slug)
				check.Equal(t, r.PreviousRank(tool, inCategory), naiveRank(before, tool.Slug, inCategory), "previous rank of %s", tool.Slug)
			}
			if rank := r.Rank(tool, false); rank.Position > 0 {
				positions[rank.Position] = true
				ranked++
			}
		}
		check.True(t, len(positions) != ranked, "release %d: got no tools with the same rank, want some", info.ID)
	}
}
