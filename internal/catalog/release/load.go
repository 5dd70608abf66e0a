package release

import (
	"cmp"
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	entrelease "palmares/ent/release"
	"palmares/ent/tool"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
)

// load reads the newest release with a client that sees one state of the database.
// Of what the previous release has in memory, it reads only what has changed since: its
// history if it is partial. It reads no history itself for a partial release.
func load(
	ctx context.Context, db *ent.Client, dialect string, newest *ent.Release, previous *Release, partial bool,
) (*Release, error) {
	if newest == nil {
		return empty(), nil
	}
	all, err := db.Release.Query().Order(entrelease.ByID(entsql.OrderDesc())).All(ctx)
	if err != nil {
		return nil, err
	}
	known, since := &history{}, 0
	if previous != nil && previous.Info != nil && previous.history.from <= newest.HistoryFrom &&
		slices.ContainsFunc(all, func(release *ent.Release) bool {
			return release.ID == previous.Info.ID && release.ImportedAt.Equal(previous.Info.ImportedAt)
		}) {
		known, since = previous.history, previous.Number()
	} else {
		previous = nil // a backup was restored: its releases differ, or some of them had been pruned
	}
	l := &loader{
		ctx: ctx, db: db, since: since, replacedSince: since, partial: partial,
		texts: map[string]string{}, prices: map[string]pricing.Price{},
	}
	if known.partial {
		l.replacedSince = 0
	}
	h, err := l.update(known, newest.HistoryFrom)
	if err != nil {
		return nil, err
	}
	switch {
	case partial:
		h.search, err = search.LoadCurrent(ctx, db, dialect)
	case known.partial:
		h.search, err = known.search.WithReplaced(ctx, db, dialect)
	case known.search == nil || known.search.Outdated(newest.HistoryFrom):
		h.search, err = search.Load(ctx, db, dialect, nil, 0)
	default:
		h.search, err = search.Load(ctx, db, dialect, known.search, since)
	}
	if err != nil {
		return nil, err
	}
	r := newRelease(newest, all, h)
	r.size = sizeOf(h)
	if !partial {
		Derived(r, newSearchedTools) // not in the first search
		if previous.Partial() {
			previous = nil // it is not sorted yet
		}
		r.sortAll(previous)
	}
	return r, nil
}

// loader reads what releases after since have written, and those after replacedSince have
// replaced and removed.
type loader struct {
	ctx                  context.Context
	db                   *ent.Client
	since, replacedSince int
	partial              bool
	texts                map[string]string        // so that equal ones are in memory once
	prices               map[string]pricing.Price // by text, so that equal ones are read once
}

// update returns a history with what has changed since.
func (l *loader) update(known *history, from int) (h *history, err error) {
	h = &history{from: from, partial: l.partial}
	h.categories, err = updated(l, known.categories, from, table[*ent.Category, Category, string]{
		id: category.FieldID, history: store.Categories,
		rows: func(next func(*entsql.Selector)) ([]*ent.Category, error) {
			return l.db.Category.Query().Where(next).Limit(pageSize).All(l.ctx)
		},
		convert: func(row *ent.Category) (*Category, string, int) {
			return &Category{row.ID, row.Label, row.ToolCount, row.AvgScore, row.Translations}, row.ID, row.SinceRelease
		},
		key:     func(c *Category) string { return c.Slug },
		compare: func(a, b *Category) int { return strings.Compare(a.Slug, b.Slug) },
	})
	if err != nil {
		return nil, err
	}
	h.tools, err = updated(l, known.tools, from, table[*ent.Tool, Tool, string]{
		id: tool.FieldID, history: store.Tools,
		rows: func(next func(*entsql.Selector)) ([]*ent.Tool, error) {
			return l.db.Tool.Query().Where(next).Limit(pageSize).All(l.ctx)
		},
		convert: func(row *ent.Tool) (*Tool, string, int) { return l.tool(row), row.ID, row.SinceRelease },
		key:     func(t *Tool) string { return t.Slug },
		compare: func(a, b *Tool) int { return strings.Compare(a.Slug, b.Slug) },
	})
	if err != nil {
		return nil, err
	}
	h.comparisons, err = updated(l, known.comparisons, from, table[*ent.Comparison, ComparisonText, string]{
		id: comparison.FieldID, history: store.Comparisons,
		rows: func(next func(*entsql.Selector)) ([]*ent.Comparison, error) {
			return l.db.Comparison.Query().Where(next, comparison.Published(true)).Limit(pageSize).All(l.ctx)
		},
		convert: func(row *ent.Comparison) (*ComparisonText, string, int) {
			c := &ComparisonText{
				row.ID, row.Title, row.WinnerNote, l.text(row.UpdatedAt), row.CanonicalURL,
				l.text(row.ToolASlug), l.text(row.ToolBSlug), l.text(row.WinnerSlug), row.Translations,
			}
			return c, row.ID, row.SinceRelease
		},
		key:     func(c *ComparisonText) string { return c.Slug },
		compare: compareComparisons,
	})
	if err != nil {
		return nil, err
	}
	h.prices, err = updated(l, known.prices, from, table[*ent.PriceChange, PriceChange, int]{
		id: pricechange.FieldID, history: store.PriceChanges,
		rows: func(next func(*entsql.Selector)) ([]*ent.PriceChange, error) {
			return l.db.PriceChange.Query().Where(next).Limit(pageSize).All(l.ctx)
		},
		convert: func(row *ent.PriceChange) (*PriceChange, int, int) {
			return l.priceChange(row), row.ID, row.SinceRelease
		},
		key: func(c *PriceChange) int { return c.id },
		compare: func(a, b *PriceChange) int {
			return cmp.Or(strings.Compare(a.Tool, b.Tool), strings.Compare(b.ChangedAt, a.ChangedAt),
				cmp.Compare(b.id, a.id))
		},
	})
	return h, err
}

// pageSize is how many rows are read at a time.
const pageSize = 2_000

// table describes how the versions of one kind of value are read.
type table[Row interface {
	Value(string) (ent.Value, error)
}, V any, Key cmp.Ordered] struct {
	id      string // the column with the key
	history store.Versioned
	rows    func(next func(*entsql.Selector)) ([]Row, error) // at most pageSize
	convert func(row Row) (value *V, key Key, since int)     // from a row
	key     func(*V) Key                                     // unique in a release
	compare func(a, b *V) int                                // the order of the values
}

// updated returns known versions with those that were written since, and without those
// that only releases before from have.
func updated[Row interface {
	Value(string) (ent.Value, error)
}, V any, Key cmp.Ordered](l *loader, known []version[V], from int, t table[Row, V, Key]) ([]version[V], error) {
	var added []version[V]
	var last Key
	for more := true; more; {
		rows, err := t.rows(func(s *entsql.Selector) {
			s.Where(entsql.And(entsql.GT(s.C(tool.FieldSinceRelease), l.since), entsql.GT(s.C(t.id), last))).OrderBy(s.C(t.id))
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			v := version[V]{until: forever}
			v.value, last, v.since = t.convert(row)
			added = append(added, v)
		}
		more = len(rows) == pageSize
	}
	type start struct {
		key   Key
		since int
	}
	ended := map[start]int{} // the release that replaced a known version
	lastID := 0
	for more := !l.partial; more; {
		rows, err := t.rows(t.history.Replaced(l.replacedSince, lastID))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			var v version[V]
			var key Key
			v.value, key, v.since = t.convert(row)
			if lastID, v.until, err = store.HistoryColumns(row); err != nil {
				return nil, err
			}
			if v.since <= l.replacedSince {
				ended[start{key, v.since}] = v.until
			} else if v.until > from {
				added = append(added, v)
			}
		}
		more = len(rows) == pageSize
	}
	compare := func(a, b version[V]) int { return cmp.Or(t.compare(a.value, b.value), a.since-b.since) }
	slices.SortFunc(added, compare)
	all := make([]version[V], 0, len(known)+len(added))
	for _, v := range known {
		if until, ok := ended[start{t.key(v.value), v.since}]; ok {
			v.until = until
		}
		if v.until <= from {
			continue
		}
		for len(added) > 0 && compare(added[0], v) < 0 {
			all, added = append(all, added[0]), added[1:]
		}
		all = append(all, v)
	}
	return append(all, added...), nil
}

// own returns a text of a single tool. Only versions of this tool may have the same, and
// looking for it among all texts takes time.
func (l *loader) own(s string) string {
	if l.partial {
		return s
	}
	return l.text(s)
}

func (l *loader) priceChange(row *ent.PriceChange) *PriceChange {
	c := &PriceChange{
		Tool: l.text(row.ToolSlug), ChangedAt: l.text(row.ChangedAt),
		Pricing: l.text(string(row.Pricing)), Price: l.text(row.Price),
		PreviousPricing: l.text(string(row.PreviousPricing)), PreviousPrice: l.text(row.PreviousPrice), id: row.ID,
	}
	c.Direction, _ = pricing.Compare(l.price(c.PreviousPrice), l.price(c.Price))
	return c
}

func (l *loader) price(text string) pricing.Price {
	known, ok := l.prices[text]
	if !ok {
		known = pricing.Read(text)
		l.prices[text] = known
	}
	return known
}

// text returns the copy of a text that is already in memory, if there is one.
func (l *loader) text(s string) string {
	known, ok := l.texts[s]
	if !ok {
		l.texts[s], known = s, s
	}
	return known
}
