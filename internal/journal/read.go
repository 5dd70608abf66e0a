package journal

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/predicate"
	"palmares/ent/release"
)

// Query says which events to read.
type Query struct {
	Types       []string // all if empty
	Categories  []string // about a tool of one of these; any if empty
	Releases    bool     // with catalog.published, too, which is about no category
	After       int      // only what comes after this event, in the order asked for
	UpTo        int      // only what this release and those before it brought; no bound if 0
	NewestFirst bool
	Limit       int
}

// Read is one page of events.
func Read(ctx context.Context, entries *ent.JournalEntryClient, q Query) ([]*Event, error) {
	types := slices.Compact(slices.Sorted(slices.Values(q.Types)))
	if len(types) < 2 {
		return read(ctx, q.entries(entries, types...))
	}
	// The index has one type's events in order, not those of several: it gives
	// the first of each, and the page is among them.
	var numbers []int
	for _, event := range types {
		some, err := q.entries(entries, event).IDs(ctx)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, some...)
	}
	slices.Sort(numbers)
	if q.NewestFirst {
		slices.Reverse(numbers)
	}
	numbers = numbers[:min(len(numbers), q.Limit)]
	if len(numbers) == 0 {
		return nil, nil
	}
	events, err := Some(ctx, entries, numbers)
	if q.NewestFirst {
		slices.Reverse(events)
	}
	return events, err
}

// entries are those of one type, or of every type.
func (q Query) entries(entries *ent.JournalEntryClient, event ...string) *ent.JournalEntryQuery {
	query := entries.Query().Where(journalentry.EventNotNil()).Limit(q.Limit)
	if len(event) == 1 {
		query.Where(journalentry.Event(event[0]))
	}
	if len(q.Categories) > 0 {
		about := journalentry.Or(journalentry.CategoryIn(q.Categories...), journalentry.OtherCategoryIn(q.Categories...))
		if q.Releases {
			about = journalentry.Or(about, journalentry.Event(EventCatalogPublished))
		}
		query.Where(about)
	}
	if q.UpTo > 0 {
		query.Where(predicate.JournalEntry(entsql.FieldLTE(journalentry.FieldReleaseNumber, q.UpTo)))
	}
	if !q.NewestFirst {
		return query.Where(journalentry.IDGT(q.After)).Order(ent.Asc(journalentry.FieldID))
	}
	if q.After > 0 {
		query.Where(journalentry.IDLT(q.After))
	}
	return query.Order(ent.Desc(journalentry.FieldID))
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
