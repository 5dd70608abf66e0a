package journal

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-json-experiment/json"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/predicate"
	"palmares/ent/release"
	"palmares/internal/catalog/record"
)

// Query selects events.
type Query struct {
	Types       []string // all if empty
	Categories  []string // that changed, or of a tool that changed; any if empty
	Tools       []string // or of these tools, whatever their category
	Releases    bool     // include catalog.published, which has no category
	Slug        string   // of the tool, comparison or category; any if empty
	Fields      []string // only updates of any of these; see FieldNames
	After       int      // start after this event, in the order of the query
	Before      int      // end before this event; unlimited if 0
	From        int      // the first release to include
	UpTo        int      // the last release to include; unlimited if 0
	Earlier     bool     // there are releases after UpTo
	NewestFirst bool
	FromEnd     bool // return the last events instead of the first, in the same order
	Limit       int
}

// pageBytes limits the approximate size of a page, because events may be long.
const pageBytes = 2 << 20

// Read returns the events of a query, regardless of their size.
func Read(ctx context.Context, entries *ent.JournalEntryClient, q Query) ([]*Event, error) {
	events, _, err := q.read(ctx, entries, math.MaxInt)
	return events, err
}

// Page returns the events of a query, and fewer than its limit (but at least one) if
// they are long. It reports whether there are more.
func Page(ctx context.Context, entries *ent.JournalEntryClient, q Query) (events []*Event, more bool, err error) {
	return q.read(ctx, entries, pageBytes)
}

// Find returns the numbers of the events that Page returns.
func Find(ctx context.Context, entries *ent.JournalEntryClient, q Query) (numbers []int, more bool, err error) {
	return q.numbers(ctx, entries, pageBytes)
}

func (q Query) read(ctx context.Context, entries *ent.JournalEntryClient, bytes int) (events []*Event, more bool, err error) {
	numbers, more, err := q.numbers(ctx, entries, bytes)
	if err != nil || len(numbers) == 0 {
		return nil, more, err
	}
	events, err = ByNumbers(ctx, entries, numbers)
	if q.NewestFirst {
		slices.Reverse(events)
	}
	return events, more, err
}

func (q Query) numbers(ctx context.Context, entries *ent.JournalEntryClient, bytes int) (numbers []int, more bool, err error) {
	found, err := q.find(ctx, entries)
	if err != nil {
		return nil, false, err
	}
	for i, e := range found[:min(len(found), q.Limit)] {
		if bytes -= e.Bytes; bytes < 0 && i > 0 {
			break
		}
		numbers = append(numbers, e.Number)
	}
	more = len(numbers) < len(found)
	if q.FromEnd {
		slices.Reverse(numbers)
	}
	return numbers, more, nil
}

// sized is the number of an event and the size of its states.
type sized struct {
	Number int `json:"id"`
	Bytes  int `json:"bytes"`
}

// descending reports whether events are read from the newest to the oldest.
func (q Query) descending() bool { return q.NewestFirst != q.FromEnd }

// find returns the events of a query and the one that follows, in the order in
// which they are read.
func (q Query) find(ctx context.Context, entries *ent.JournalEntryClient) (found []sized, err error) {
	q.Limit++
	types := slices.Compact(slices.Sorted(slices.Values(q.Types)))
	if len(q.Fields) > 0 {
		if types = q.updates(types); len(types) == 0 {
			return nil, nil
		}
	}
	if len(types) == 0 {
		return q.findIn(ctx, entries.Query())
	}
	// The index orders the events of one type, not those of several types. The page
	// is among the first events of each type.
	for _, event := range types {
		query := entries.Query().Where(journalentry.Event(event))
		if len(q.Fields) > 0 {
			query.Where(changed(event, q.Fields))
		}
		some, err := q.findIn(ctx, query)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b sized) int {
		if q.descending() {
			a, b = b, a
		}
		return a.Number - b.Number
	})
	return found[:min(len(found), q.Limit)], nil
}

func (q Query) findIn(ctx context.Context, query *ent.JournalEntryQuery) (found []sized, err error) {
	query.Where(journalentry.EventNotNil()).Limit(q.Limit)
	if len(q.Categories) > 0 || len(q.Tools) > 0 {
		about := journalentry.Or(journalentry.CategoryIn(q.Categories...), journalentry.OtherCategoryIn(q.Categories...),
			journalentry.And(journalentry.SlugIn(q.Tools...), journalentry.EventIn(ToolEvents...)))
		if q.Releases {
			about = journalentry.Or(about, journalentry.Event(EventCatalogPublished))
		}
		query.Where(about)
	}
	if q.Slug != "" {
		query.Where(journalentry.Slug(q.Slug))
	}
	query.Where(q.inReleases()...)
	oldest, newest := q.After, q.Before
	if q.NewestFirst {
		oldest, newest = newest, oldest
	}
	query.Where(journalentry.IDGT(oldest))
	if newest > 0 {
		query.Where(journalentry.IDLT(newest))
	}
	if q.descending() {
		query.Order(ent.Desc(journalentry.FieldID))
	} else {
		query.Order(ent.Asc(journalentry.FieldID))
	}
	err = query.Select(journalentry.FieldID).Aggregate(func(s *entsql.Selector) string {
		return entsql.As(statesBytes(s.C(journalentry.FieldBefore), s.C(journalentry.FieldAfter)), "bytes")
	}).Scan(ctx, &found)
	return found, err
}

// statesBytes is the SQL for the size of an entry's states.
func statesBytes(before, after string) string {
	return "coalesce(octet_length(" + before + "), 0) + coalesce(octet_length(" + after + "), 0)"
}

// inReleases limits a query to its releases. Event numbers increase with release
// numbers, so events of other releases are skipped without reading them: those up to
// the last event of the previous release, and those from the last event of the next
// release on.
func (q Query) inReleases() (conditions []predicate.JournalEntry) {
	type comparison = func(column string, value any) *entsql.Predicate
	type direction = func(column string) string
	beyond := func(operator string, is comparison, release int, order direction, otherwise int) predicate.JournalEntry {
		return func(s *entsql.Selector) {
			other := entsql.And(entsql.EQ(journalentry.FieldEvent, EventCatalogPublished), is(journalentry.FieldReleaseNumber, release))
			published := entsql.Dialect(s.Dialect()).Select(journalentry.FieldID).
				From(entsql.Table(journalentry.Table).As("published")).
				Where(other).OrderBy(order(journalentry.FieldID)).Limit(1)
			s.Where(entsql.P(func(b *entsql.Builder) {
				b.Ident(s.C(journalentry.FieldID)).WriteString(" " + operator + " coalesce((").Join(published).
					WriteString("), " + strconv.Itoa(otherwise) + ")")
			}))
		}
	}
	if q.From > 1 {
		conditions = append(conditions, entsql.FieldGTE(journalentry.FieldReleaseNumber, q.From),
			beyond(">", entsql.LT, q.From, entsql.Desc, 0))
	}
	if q.UpTo > 0 {
		conditions = append(conditions, entsql.FieldLTE(journalentry.FieldReleaseNumber, q.UpTo))
	}
	if q.UpTo > 0 && q.Earlier {
		conditions = append(conditions, beyond("<", entsql.GT, q.UpTo, entsql.Asc, math.MaxInt))
	}
	return conditions
}

// updates returns the event types that can change any of the query's fields, among
// the given types or, if there are none, all types.
func (q Query) updates(types []string) (updates []string) {
	for event, fields := range updatable {
		wanted := func(f record.Property) bool { return slices.Contains(q.Fields, f.Name) }
		if (len(types) == 0 || slices.Contains(types, event)) && slices.ContainsFunc(fields, wanted) {
			updates = append(updates, event)
		}
	}
	return updates
}

// updatable maps the types of update events to the fields that they can change.
var updatable = map[string][]record.Property{
	EventCategoryUpdated:   categoryFields,
	EventToolUpdated:       toolFields,
	EventRetiredUpdated:    retiredFields,
	EventComparisonUpdated: comparisonFields,
	EventEmbeddingsChanged: documentFields,
}

// changed matches updates of any of the fields. It compares the stored states as
// eventOf does.
func changed(event string, fields []string) predicate.JournalEntry {
	value := func(state string, f record.Property) string {
		if f.Name == "winner" {
			return "coalesce(" + state + " ->> 'winner_name', " + state + " ->> 'winner')" // old entries have no name
		}
		return state + " ->> '" + f.Stored + "'"
	}
	var differ []string
	for _, f := range updatable[event] {
		if slices.Contains(fields, f.Name) {
			differ = append(differ, value("old", f)+" IS DISTINCT FROM "+value("new", f))
		}
	}
	return func(s *entsql.Selector) {
		before, after, once := s.C(journalentry.FieldBefore), s.C(journalentry.FieldAfter), ""
		if s.Dialect() == dialect.Postgres {
			// Without OFFSET, the state would be parsed again for each field.
			before, after, once = "CAST("+before+" AS jsonb)", "CAST("+after+" AS jsonb)", " OFFSET 0"
		}
		s.Where(entsql.ExprP("EXISTS (SELECT 1 FROM (SELECT " + before + " AS old, " + after + " AS new" + once + ") AS states WHERE " + strings.Join(differ, " OR ") + ")"))
	}
}

// ByNumbers returns the events with these numbers, oldest first. Numbers that do not
// exist are skipped.
func ByNumbers(ctx context.Context, entries *ent.JournalEntryClient, numbers []int) ([]*Event, error) {
	return byNumbers(ctx, entries.Query(), numbers)
}

// WithoutStates is ByNumbers without Before, After and Fields, which are most of an
// event.
func WithoutStates(ctx context.Context, entries *ent.JournalEntryClient, numbers []int) ([]*Event, error) {
	query := entries.Query()
	query.Select(journalentry.FieldID, journalentry.FieldEvent, journalentry.FieldSlug, journalentry.FieldReleaseNumber,
		journalentry.FieldCategory, journalentry.FieldOtherCategory)
	return byNumbers(ctx, query, numbers)
}

func byNumbers(ctx context.Context, query *ent.JournalEntryQuery, numbers []int) ([]*Event, error) {
	rows, err := query.Where(hasNumber(numbers), journalentry.EventNotNil()).Order(ent.Asc(journalentry.FieldID)).
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

// hasNumber matches entries by their numbers, which are passed as one parameter
// because the SQLite driver is slow with many.
func hasNumber(numbers []int) predicate.JournalEntry {
	list, err := json.Marshal(numbers)
	if err != nil {
		panic(err) // numbers are always valid
	}
	return func(s *entsql.Selector) {
		values, end := "SELECT value FROM json_each(", ")"
		if s.Dialect() == dialect.Postgres {
			values, end = "SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(", " AS json))"
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C(journalentry.FieldID)).WriteString(" IN (" + values).Arg(string(list)).WriteString(end + ")")
		}))
	}
}

// Changed returns the tools and categories that the releases after one changed, up to
// another, also where readers do not notice. A category changes with its tools. It
// returns false if more than limit rows would have to be read.
func Changed(ctx context.Context, entries *ent.JournalEntryClient, after, upTo, limit int) (tools, categories []string, ok bool, err error) {
	var found []struct {
		Kind, Slug, Category string
		Other                string `json:"other_category"`
	}
	err = entries.Query().Where(Query{From: after + 1, UpTo: upTo}.inReleases()...).Unique(true).Limit(limit+1).
		Select(journalentry.FieldKind, journalentry.FieldSlug, journalentry.FieldCategory, journalentry.FieldOtherCategory).Scan(ctx, &found)
	for _, row := range found {
		if noun, _, _ := strings.Cut(row.Kind, "."); noun != "comparatif" && noun != "category" && noun != "catalog" {
			tools = append(tools, row.Slug)
		}
		categories = append(categories, row.Category, row.Other)
	}
	distinct := func(all []string) []string {
		slices.Sort(all)
		return slices.DeleteFunc(slices.Compact(all), func(slug string) bool { return slug == "" })
	}
	return distinct(tools), distinct(categories), len(found) <= limit, err
}

// Newest returns the number of the newest entry, or 0 if there is none.
func Newest(ctx context.Context, entries *ent.JournalEntryClient) (int, error) {
	newest, err := entries.Query().Order(ent.Desc(journalentry.FieldID)).FirstID(ctx)
	if ent.IsNotFound(err) {
		return 0, nil
	}
	return newest, err
}
