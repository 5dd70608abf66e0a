package journal

import (
	"context"
	"math"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/predicate"
	"palmares/ent/release"
)

// Query selects events.
type Query struct {
	Types       []string // all if empty
	Categories  []string // of a tool that changed; any if empty
	Releases    bool     // include catalog.published, which has no category
	After       int      // start after this event, in the order of the query
	UpTo        int      // the last release to include; unlimited if 0
	NewestFirst bool
	Limit       int
}

// pageBytes is the approximate amount of text on a page, because texts may be
// long.
const pageBytes = 2 << 20

// Read returns the events of a query, whatever their size.
func Read(ctx context.Context, entries *ent.JournalEntryClient, q Query) ([]*Event, error) {
	events, _, err := q.read(ctx, entries, math.MaxInt)
	return events, err
}

// Page returns at least one event of a query, and fewer than its limit if their
// texts are long. It reports whether there are more.
func Page(ctx context.Context, entries *ent.JournalEntryClient, q Query) (events []*Event, more bool, err error) {
	return q.read(ctx, entries, pageBytes)
}

func (q Query) read(ctx context.Context, entries *ent.JournalEntryClient, bytes int) (events []*Event, more bool, err error) {
	found, err := q.find(ctx, entries)
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	var numbers []int
	for i, e := range found[:min(len(found), q.Limit)] {
		if bytes -= e.Bytes; bytes < 0 && i > 0 {
			break
		}
		numbers = append(numbers, e.Number)
	}
	events, err = ByNumbers(ctx, entries, numbers)
	if q.NewestFirst {
		slices.Reverse(events)
	}
	return events, len(numbers) < len(found), err
}

// sized is the number of an event and the size of its texts.
type sized struct {
	Number int `json:"id"`
	Bytes  int `json:"bytes"`
}

// find returns the events of a query and the one that follows, in order.
func (q Query) find(ctx context.Context, entries *ent.JournalEntryClient) (found []sized, err error) {
	q.Limit++
	types := slices.Compact(slices.Sorted(slices.Values(q.Types)))
	if len(types) == 0 {
		return q.findIn(ctx, entries.Query())
	}
	// The index has the events of one type in order, not those of several: the
	// page is among the first of each.
	for _, event := range types {
		some, err := q.findIn(ctx, entries.Query().Where(journalentry.Event(event)))
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b sized) int {
		if q.NewestFirst {
			a, b = b, a
		}
		return a.Number - b.Number
	})
	return found[:min(len(found), q.Limit)], nil
}

func (q Query) findIn(ctx context.Context, query *ent.JournalEntryQuery) (found []sized, err error) {
	query.Where(journalentry.EventNotNil()).Limit(q.Limit)
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
		query.Where(journalentry.IDGT(q.After)).Order(ent.Asc(journalentry.FieldID))
	} else {
		if q.After > 0 {
			query.Where(journalentry.IDLT(q.After))
		}
		query.Order(ent.Desc(journalentry.FieldID))
	}
	err = query.Select(journalentry.FieldID).Aggregate(func(s *entsql.Selector) string {
		before, after := s.C(journalentry.FieldBefore), s.C(journalentry.FieldAfter)
		return entsql.As("coalesce(octet_length("+before+"), 0) + coalesce(octet_length("+after+"), 0)", "bytes")
	}).Scan(ctx, &found)
	return found, err
}

// ByNumbers returns the events with these numbers, oldest first. Numbers that do not
// exist are skipped.
func ByNumbers(ctx context.Context, entries *ent.JournalEntryClient, numbers []int) ([]*Event, error) {
	rows, err := entries.Query().Where(journalentry.IDIn(numbers...), journalentry.EventNotNil()).Order(ent.Asc(journalentry.FieldID)).
		WithRelease(func(q *ent.ReleaseQuery) { q.Select(release.FieldID, release.FieldImportedAt) }).All(ctx)
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

// Newest returns the number of the newest entry, or 0 if there is none.
func Newest(ctx context.Context, entries *ent.JournalEntryClient) (int, error) {
	newest, err := entries.Query().Order(ent.Desc(journalentry.FieldID)).FirstID(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	return newest, err
}
