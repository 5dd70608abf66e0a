package graph

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/journalentry"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
)

// historyChange is a change to a tool's price or score.
type historyChange struct {
	at             string
	pricing, price string // empty if they did not change
	scored         bool   // score is known
	score          *float64
}

// maxHistory is the maximum number of entries in a history.
const maxHistory = maxPageSize

// addHistory combines two sources: the price history, which also has changes
// before the first import, and the journal, which has the scores.
func (r *reader) addHistory(ctx context.Context, tools []*model.Tool) error {
	changes, err := r.journalChanges(ctx, tools)
	if err != nil {
		return err
	}
	for _, t := range tools {
		for _, price := range slices.Backward(t.PriceHistory) {
			changes[t.Slug] = append(changes[t.Slug], historyChange{at: price.ChangedAt, pricing: string(price.Pricing), price: price.Price})
		}
		t.History = historyOf(t, changes[t.Slug])
	}
	return nil
}

// historyOf returns one entry for each day with a change. The last entry is
// always the tool's current state.
func historyOf(t *model.Tool, changes []historyChange) []*model.ToolMoment {
	// The sort is stable: on the same day, price changes follow the journal.
	slices.SortStableFunc(changes, func(a, b historyChange) int { return cmp.Compare(a.at, b.at) })
	var history []*model.ToolMoment
	var now model.ToolMoment
	for i, change := range changes {
		now.At = change.at
		if change.price != "" {
			now.Pricing, now.Price = model.Pricing(change.pricing), change.price
		}
		if change.scored {
			now.Score = change.score
		}
		lastOfDay := i == len(changes)-1 || changes[i+1].at != change.at
		if lastOfDay && now.Price != "" {
			history = addMoment(history, now)
		}
	}
	history = addMoment(history, model.ToolMoment{At: max(t.UpdatedAt, now.At), Pricing: t.Pricing, Price: t.Price, Score: t.Score})
	return history[max(0, len(history)-maxHistory):]
}

// addMoment skips an entry without a change and replaces one of the same day.
func addMoment(history []*model.ToolMoment, next model.ToolMoment) []*model.ToolMoment {
	if len(history) > 0 {
		last := history[len(history)-1]
		sameScore := last.Score == next.Score || last.Score != nil && next.Score != nil && *last.Score == *next.Score
		switch {
		case last.Pricing == next.Pricing && last.Price == next.Price && sameScore:
			return history
		case last.At == next.At:
			return addMoment(history[:len(history)-1], next)
		}
	}
	return append(history, &next)
}

// journalChanges returns how tools were created and how their scores changed, by
// slug. The database extracts the values from the journal's JSON, because a year
// of daily updates to 200 tools would be too much to load.
func (r *reader) journalChanges(ctx context.Context, tools []*model.Tool) (map[string][]historyChange, error) {
	before, after := journalentry.FieldBefore, journalentry.FieldAfter
	if r.dialect() == dialect.Postgres {
		before, after = "CAST("+before+" AS jsonb)", "CAST("+after+" AS jsonb)"
	}
	s := entsql.Dialect(r.dialect()).Select(journalentry.FieldSlug, journalentry.FieldKind).From(entsql.Table(journalentry.Table))
	// A record that was changed without a new date counts as changed on the date of
	// its feed.
	s.AppendSelectExprAs(entsql.Raw("CASE WHEN "+before+" ->> 'updated_at' IS DISTINCT FROM "+after+" ->> 'updated_at' THEN "+after+" ->> 'updated_at' "+
		"ELSE (SELECT feed_date FROM releases WHERE number = release_number) END"), "day")
	for _, name := range []string{"pricing", "price", "score"} {
		s.AppendSelectExprAs(entsql.Raw(after+" ->> '"+name+"'"), name)
	}
	s.Where(entsql.And(
		entsql.In(journalentry.FieldSlug, mapSlice(tools, func(t *model.Tool) any { return t.Slug })...),
		entsql.In(journalentry.FieldKind, journal.ToolCreated, journal.ToolUpdated),
		entsql.LTE(journalentry.FieldReleaseNumber, r.release.Number()),
		entsql.ExprP(after+" ->> 'price' IS NOT NULL"), // retired tools have none
		entsql.ExprP("("+journalentry.FieldKind+" = '"+journal.ToolCreated+"' OR "+before+" ->> 'score' IS DISTINCT FROM "+after+" ->> 'score')"),
	)).OrderBy(journalentry.FieldID)
	statement, args := s.Query()
	changes := map[string][]historyChange{}
	err := store.ScanRows(ctx, r.database(), func(rows *sql.Rows) error {
		var slug, kind string
		var score sql.NullFloat64
		change := historyChange{scored: true}
		if err := rows.Scan(&slug, &kind, &change.at, &change.pricing, &change.price, &score); err != nil {
			return err
		}
		if score.Valid {
			change.score = &score.Float64
		}
		if kind == journal.ToolUpdated {
			change.pricing, change.price = "", "" // the price history has them
		}
		changes[slug] = append(changes[slug], change)
		return nil
	}, statement, args...)
	return changes, err
}
