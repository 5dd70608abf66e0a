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

// pageBytes is how much text a page holds, about: a feed's texts may be long.
const pageBytes = 2 << 20

// Read is as many events as are asked for, however long they are.
func Read(ctx context.Context, entries *ent.JournalEntryClient, q Query) ([]*Event, error) {
	events, _, err := readWithin(ctx, entries, q, math.MaxInt)
	return events, err
}

// Page is as many events as are asked for or, where their texts are long, fewer
// but one at least. It tells whether the query has more of them.
func Page(ctx context.Context, entries *ent.JournalEntryClient, q Query) (events []*Event, more bool, err error) {
	return readWithin(ctx, entries, q, pageBytes)
}

func readWithin(ctx context.Context, entries *ent.JournalEntryClient, q Query, bytes int) (events []*Event, more bool, err error) {
	found, err := q.places(ctx, entries)
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	var numbers []int
	for i, p := range found[:min(len(found), q.Limit)] {
		if bytes -= p.Bytes; bytes < 0 && i > 0 {
			break
		}
		numbers = append(numbers, p.Number)
	}
	events, err = Some(ctx, entries, numbers)
	if q.NewestFirst {
		slices.Reverse(events)
	}
	return events, len(numbers) < len(found), err
}

// place is where an event is, and how long its texts are.
type place struct {
	Number int `json:"id"`
	Bytes  int `json:"bytes"`
}

// places are those of the events that are asked for and of one more, in order.
func (q Query) places(ctx context.Context, entries *ent.JournalEntryClient) (found []place, err error) {
	q.Limit++
	types := slices.Compact(slices.Sorted(slices.Values(q.Types)))
	if len(types) == 0 {
		return placesOf(ctx, q.entries(entries))
	}
	// The index has one type's events in order, not those of several: it gives
	// the first of each, and the page is among them.
	for _, event := range types {
		some, err := placesOf(ctx, q.entries(entries, event))
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b place) int {
		if q.NewestFirst {
			a, b = b, a
		}
		return a.Number - b.Number
	})
	return found[:min(len(found), q.Limit)], nil
}

func placesOf(ctx context.Context, query *ent.JournalEntryQuery) (found []place, err error) {
	err = query.Select(journalentry.FieldID).Aggregate(func(s *entsql.Selector) string {
		was, is := s.C(journalentry.FieldBefore), s.C(journalentry.FieldAfter)
		return entsql.As("coalesce(octet_length("+was+"), 0) + coalesce(octet_length("+is+"), 0)", "bytes")
	}).Scan(ctx, &found)
	return found, err
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
