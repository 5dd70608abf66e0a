package graph

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/journalentry"
	"palmares/ent/pricechange"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
)

// A tool's history is put together from two books: the price history, which
// also knows of changes before the first import, and the journal, which alone
// knows of scores.

// turn is what became of a tool on a day.
type turn struct {
	at             string
	pricing, price string // empty for as before
	scored         bool
	score          *float64
}

// mostMoments is how many entries of a history are told.
const mostMoments = maxSlice

// fillHistory reads the histories of tools together.
func (r *reading) fillHistory(ctx context.Context, tools []*model.Tool) error {
	slugs := mapped(tools, func(t *model.Tool) string { return t.Slug })
	turns, err := r.journalTurns(ctx, slugs)
	if err != nil {
		return err
	}
	prices, err := r.client.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).
		Order(pricechange.ByChangedAt(), pricechange.ByID()).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range prices {
		turns[row.ToolSlug] = append(turns[row.ToolSlug], turn{at: row.ChangedAt, pricing: string(row.Pricing), price: row.Price})
	}
	for _, t := range tools {
		t.History = momentsOf(t, turns[t.Slug])
	}
	return nil
}

// momentsOf tells days on which something changed. However the books differ,
// the last moment is how the tool is now.
func momentsOf(t *model.Tool, turns []turn) []*model.ToolMoment {
	// The sort is stable: on one day, prices come after how the tool came in.
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	moments := []*model.ToolMoment{}
	var now model.ToolMoment
	for i, turn := range turns {
		now.At = turn.at
		if turn.price != "" {
			now.Pricing, now.Price = model.Pricing(turn.pricing), turn.price
		}
		if turn.scored {
			now.Score = turn.score
		}
		lastOfDay := i == len(turns)-1 || turns[i+1].at != turn.at
		if lastOfDay && now.Price != "" {
			moments = addMoment(moments, now)
		}
	}
	today := model.ToolMoment{At: max(t.UpdatedAt, now.At), Pricing: t.Pricing, Price: t.Price, Score: t.Score}
	moments = addMoment(moments, today)
	return moments[max(0, len(moments)-mostMoments):]
}

// addMoment leaves out what is as it was, and keeps one moment for a day.
func addMoment(moments []*model.ToolMoment, now model.ToolMoment) []*model.ToolMoment {
	if len(moments) > 0 && alike(moments[len(moments)-1], &now) {
		return moments
	}
	if len(moments) > 0 && moments[len(moments)-1].At == now.At {
		moments = moments[:len(moments)-1]
		return addMoment(moments, now)
	}
	return append(moments, &now)
}

func alike(a, b *model.ToolMoment) bool {
	sameScore := a.Score == b.Score || a.Score != nil && b.Score != nil && *a.Score == *b.Score
	return a.Pricing == b.Pricing && a.Price == b.Price && sameScore
}

// journalTurns reads how tools came in and how their scores changed, by slug.
// The database takes the few values out of the journal's texts: a year of
// daily updates of 200 tools would be too much to read whole.
func (r *reading) journalTurns(ctx context.Context, slugs []string) (map[string][]turn, error) {
	was, is := journalentry.FieldBefore, journalentry.FieldAfter
	if r.catalog.Dialect() == dialect.Postgres {
		was, is = "CAST("+was+" AS jsonb)", "CAST("+is+" AS jsonb)"
	}
	s := entsql.Dialect(r.catalog.Dialect()).Select(journalentry.FieldSlug, journalentry.FieldKind).From(entsql.Table(journalentry.Table))
	// A record whose date did not move changed by the day of its feed.
	s.AppendSelectExprAs(entsql.Raw("CASE WHEN "+was+" ->> 'updated_at' IS DISTINCT FROM "+is+" ->> 'updated_at' THEN "+is+" ->> 'updated_at' "+
		"ELSE (SELECT feed_date FROM releases WHERE number = release_number) END"), "day")
	for _, name := range []string{"pricing", "price", "score"} {
		s.AppendSelectExprAs(entsql.Raw(is+" ->> '"+name+"'"), name)
	}
	s.Where(entsql.And(
		entsql.In(journalentry.FieldSlug, anyOf(slugs)...),
		entsql.In(journalentry.FieldKind, journal.ToolCreated, journal.ToolUpdated),
		entsql.LTE(journalentry.FieldReleaseNumber, r.release.ID),
		entsql.ExprP(is+" ->> 'price' IS NOT NULL"), // or it is retired
		entsql.ExprP("("+journalentry.FieldKind+" = '"+journal.ToolCreated+"' OR "+was+" ->> 'score' IS DISTINCT FROM "+is+" ->> 'score')"),
	)).OrderBy(journalentry.FieldID)
	statement, args := s.Query()
	rows, err := r.catalog.Select(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	turns := map[string][]turn{}
	for rows.Next() {
		var slug, kind string
		var score sql.NullFloat64
		next := turn{scored: true}
		if err := rows.Scan(&slug, &kind, &next.at, &next.pricing, &next.price, &score); err != nil {
			return nil, err
		}
		if score.Valid {
			next.score = &score.Float64
		}
		if kind == journal.ToolUpdated {
			next.pricing, next.price = "", "" // the price history tells
		}
		turns[slug] = append(turns[slug], next)
	}
	return turns, rows.Err()
}

func anyOf(texts []string) []any { return mapped(texts, func(text string) any { return text }) }
