package journal

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
)

// Tools reads the entries of several tools, up to a release.
type Tools struct {
	DB      *ent.Client
	Dialect string
	Slugs   []string
	UpTo    int // the last release to include
}

// entries selects columns of the tools' entries that match the conditions.
func (t Tools) entries(columns []string, of *entsql.Predicate, and ...*entsql.Predicate) *entsql.Selector {
	slugs := make([]any, len(t.Slugs))
	for i, slug := range t.Slugs {
		slugs[i] = slug
	}
	conditions := []*entsql.Predicate{
		entsql.In(journalentry.FieldSlug, slugs...), of, entsql.LTE(journalentry.FieldReleaseNumber, t.UpTo),
	}
	return entsql.Dialect(t.Dialect).Select(columns...).From(entsql.Table(journalentry.Table)).
		Where(entsql.And(append(conditions, and...)...))
}

// scan reads the rows of a statement about some tools at a time.
func (t Tools) scan(ctx context.Context, of func(Tools) *entsql.Selector, scan func(*sql.Rows) error) error {
	for slugs := range slices.Chunk(t.Slugs, release.MaxParameters) {
		some := t
		some.Slugs = slugs
		statement, args := of(some).Query()
		if err := store.ScanRows(ctx, t.DB, scan, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// ofTypes selects events of the given types, which must not come from a caller. The
// expression hides the column from SQLite's planner, which would otherwise read all
// events of these types instead of those of a few tools.
func ofTypes(types ...string) *entsql.Predicate {
	return entsql.ExprP("coalesce(" + journalentry.FieldEvent + ", '') IN ('" + strings.Join(types, "', '") + "')")
}

// ToolQuery selects events of each tool.
type ToolQuery struct {
	Types        []string // some of ToolEvents, at least one
	Older, Newer int      // than these events; any if 0
	Limit        int      // for each tool
	FromOldest   bool
	WithStates   bool // the states will be read too, so their size is limited
}

// toolsBytes limits the size of the events of all tools, because reviews may be
// long. Each tool gets at least one event.
const toolsBytes = 8 << 20

// Events returns the numbers of each tool's events, newest first, and whether it
// has more.
func (t Tools) Events(ctx context.Context, q ToolQuery) (numbers map[string][]int, more map[string]bool, err error) {
	numbers, more = map[string][]int{}, map[string]bool{}
	bytes := toolsBytes
	err = t.scan(ctx, q.of, func(rows *sql.Rows) error {
		var slug string
		var number, size int
		if err := rows.Scan(&number, &slug, &size); err != nil {
			return err
		}
		if known := len(numbers[slug]); more[slug] || known == q.Limit || known > 0 && bytes < size {
			more[slug] = true
			return nil
		}
		bytes -= size
		numbers[slug] = append(numbers[slug], number)
		return nil
	})
	if q.FromOldest {
		for _, of := range numbers {
			slices.Reverse(of)
		}
	}
	return numbers, more, err
}

// of numbers the events of each tool and selects one more than the limit.
func (q ToolQuery) of(t Tools) *entsql.Selector {
	all := t.entries([]string{journalentry.FieldID, journalentry.FieldSlug}, ofTypes(q.Types...))
	if q.Older > 0 {
		all.Where(entsql.LT(journalentry.FieldID, q.Older))
	}
	if q.Newer > 0 {
		all.Where(entsql.GT(journalentry.FieldID, q.Newer))
	}
	order := journalentry.FieldID + " DESC"
	if q.FromOldest {
		order = journalentry.FieldID
	}
	bytes := "0"
	if q.WithStates {
		bytes = statesBytes(journalentry.FieldBefore, journalentry.FieldAfter)
	}
	all.AppendSelectExprAs(entsql.Raw(bytes), "bytes")
	place := entsql.RowNumber().PartitionBy(journalentry.FieldSlug).OrderExpr(entsql.Expr(order))
	all.AppendSelectExprAs(place, "place")
	return entsql.Dialect(t.Dialect).Select(journalentry.FieldID, journalentry.FieldSlug, "bytes").
		From(all.As("events")).Where(entsql.LTE("place", q.Limit+1)).OrderBy("place", journalentry.FieldSlug)
}

// Versions returns the newest or oldest events that started a version of a tool or ended
// its last one, oldest first, with at most limit versions of each tool, and with the event
// that ended the last of them.
func (t Tools) Versions(ctx context.Context, limit int, fromOldest bool) ([]*Event, error) {
	order := journalentry.FieldID + " DESC"
	if fromOldest {
		order = journalentry.FieldID
		limit++
	}
	of := func(t Tools) *entsql.Selector {
		newest := t.entries([]string{journalentry.FieldID},
			ofTypes(EventToolCreated, EventToolUpdated, EventToolRetired, EventRetiredUpdated, EventToolRemoved))
		// A removal is not a version. It has the same place as the version that was read
		// before it.
		place := entsql.Window(func(b *entsql.Builder) {
			b.WriteString("sum(CASE WHEN " + journalentry.FieldEvent + " = '" + EventToolRemoved + "' THEN 0 ELSE 1 END)")
		}).PartitionBy(journalentry.FieldSlug).OrderExpr(entsql.Expr(order))
		newest.AppendSelectExprAs(place, "place")
		return entsql.Dialect(t.Dialect).Select(journalentry.FieldID).From(newest.As("newest")).
			Where(entsql.LTE("place", limit))
	}
	var numbers []int
	err := t.scan(ctx, of, func(rows *sql.Rows) error {
		var number int
		err := rows.Scan(&number)
		numbers = append(numbers, number)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ByNumbers(ctx, t.DB.JournalEntry, numbers)
}

// FirstReleases returns the number of the release that first had each tool.
func (t Tools) FirstReleases(ctx context.Context) (map[string]int, error) {
	first := map[string]int{}
	of := func(t Tools) *entsql.Selector {
		s := t.entries([]string{journalentry.FieldSlug}, ofTypes(EventToolCreated, EventToolRetired))
		return s.AppendSelectExprAs(entsql.Raw("min("+journalentry.FieldReleaseNumber+")"), "first").GroupBy(journalentry.FieldSlug)
	}
	err := t.scan(ctx, of, func(rows *sql.Rows) error {
		var slug string
		var release int
		err := rows.Scan(&slug, &release)
		first[slug] = release
		return err
	})
	return first, err
}

// ScoreChange is the creation of a tool or a change to its score.
type ScoreChange struct {
	Slug, Day string
	Score     *float64
}

// ScoreChanges returns how the tools were created and how their scores changed, those of
// each tool oldest first. The database extracts the values from the journal's JSON, because a
// year of daily updates to 200 tools would be too much to load.
func (t Tools) ScoreChanges(ctx context.Context) (changes []ScoreChange, err error) {
	before, after := journalentry.FieldBefore, journalentry.FieldAfter
	if t.Dialect == dialect.Postgres {
		before, after = "CAST("+before+" AS jsonb)", "CAST("+after+" AS jsonb)"
	}
	differ := func(name string) string {
		return before + " ->> '" + name + "' IS DISTINCT FROM " + after + " ->> '" + name + "'"
	}
	of := func(t Tools) *entsql.Selector {
		s := t.entries([]string{journalentry.FieldSlug},
			entsql.In(journalentry.FieldKind, ToolCreated, ToolUpdated),
			entsql.ExprP(after+" ->> 'price' IS NOT NULL"), // retired tools have none
			entsql.ExprP("("+journalentry.FieldKind+" = '"+ToolCreated+"' OR "+differ("score")+")"),
		).OrderBy(journalentry.FieldID)
		// A record that was changed without a new date counts as changed on the date of
		// its feed.
		s.AppendSelectExprAs(entsql.Raw("CASE WHEN "+differ("updated_at")+" THEN "+after+" ->> 'updated_at' "+
			"ELSE (SELECT feed_date FROM releases WHERE number = release_number) END"), "day")
		return s.AppendSelectExprAs(entsql.Raw(after+" ->> 'score'"), "score")
	}
	err = t.scan(ctx, of, func(rows *sql.Rows) error {
		var c ScoreChange
		err := rows.Scan(&c.Slug, &c.Day, &c.Score)
		changes = append(changes, c)
		return err
	})
	return changes, err
}
