package journal

import (
	"context"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/release"
)

// Query says which events to read.
type Query struct {
	Types       []string // all if empty
	Category    string   // any if empty
	After       int      // only what comes after this event, in the order asked for
	NewestFirst bool
	Limit       int
}

// Read is one page of events.
func Read(ctx context.Context, entries *ent.JournalEntryClient, q Query) ([]*Event, error) {
	query := entries.Query().Where(journalentry.EventNotNil()).Limit(q.Limit)
	if len(q.Types) > 0 {
		query.Where(journalentry.EventIn(q.Types...))
	}
	if q.Category != "" {
		query.Where(journalentry.Or(journalentry.Category(q.Category), journalentry.OtherCategory(q.Category)))
	}
	switch {
	case q.NewestFirst && q.After > 0:
		query.Where(journalentry.IDLT(q.After)).Order(ent.Desc(journalentry.FieldID))
	case q.NewestFirst:
		query.Order(ent.Desc(journalentry.FieldID))
	default:
		query.Where(journalentry.IDGT(q.After)).Order(ent.Asc(journalentry.FieldID))
	}
	return read(ctx, query)
}

// Some are events by their numbers, oldest first. Those that are not there are
// left out.
func Some(ctx context.Context, entries *ent.JournalEntryClient, numbers []int) ([]*Event, error) {
	return read(ctx, entries.Query().Where(journalentry.IDIn(numbers...), journalentry.EventNotNil()).Order(ent.Asc(journalentry.FieldID)))
}

func read(ctx context.Context, query *ent.JournalEntryQuery) ([]*Event, error) {
	rows, err := query.WithRelease(func(q *ent.ReleaseQuery) { q.Select(release.FieldID, release.FieldImportedAt) }).All(ctx)
	if err != nil {
		return nil, err
	}
	events := make([]*Event, len(rows))
	for i, row := range rows {
		if events[i], err = eventOf(row); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// Newest is the number of the newest entry, 0 before the first.
func Newest(ctx context.Context, entries *ent.JournalEntryClient) (int, error) {
	newest, err := entries.Query().Order(ent.Desc(journalentry.FieldID)).FirstID(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	return newest, err
}
