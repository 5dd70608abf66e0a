package graph

import (
	"cmp"
	"context"
	"slices"

	"palmares/graph/document"
	"palmares/graph/model"
)

// historyChange is a change to a tool's price or score.
type historyChange struct {
	at             string
	pricing, price string // empty if they did not change
	scored         bool   // score is known
	score          *float64
}

// maxHistory is the maximum number of entries in a history.
const maxHistory = document.MaxPageSize

// addHistory combines two sources: the price history, which also has changes
// before the first import, and the journal, which has the scores.
func (r *reader) addHistory(ctx context.Context, tools []*model.Tool) error {
	slugs := mapSlice(tools, func(t *model.Tool) string { return t.Slug })
	scores, err := r.journalOf(slugs).ScoreChanges(ctx)
	if err != nil {
		return err
	}
	changes := map[string][]historyChange{}
	for _, c := range scores {
		changes[c.Slug] = append(changes[c.Slug],
			historyChange{at: c.Day, pricing: c.Pricing, price: c.Price, scored: true, score: c.Score})
	}
	for _, t := range tools {
		for _, price := range slices.Backward(t.PriceHistory) {
			changes[t.Slug] = append(changes[t.Slug],
				historyChange{at: price.ChangedAt, pricing: string(price.Pricing), price: price.Price})
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
	history = addMoment(history, model.ToolMoment{
		At: max(t.UpdatedAt, now.At), Pricing: t.Pricing, Price: t.Price, Score: t.Score,
	})
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
