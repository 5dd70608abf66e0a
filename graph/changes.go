package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Changes(
	ctx context.Context, first *int, after *string, last *int, before *string,
	types []model.ChangeType, category, slug, since, until *string, release, afterRelease *int,
	fields []string, order model.ChangeOrder,
) (*model.ChangeConnection, error) {
	r, p := readerFrom(ctx), paging{first, after, last, before}
	query := journal.Query{
		NewestFirst: order == model.ChangeOrderNewestFirst, Types: model.Map(types, model.ChangeType.EventName), Fields: fields,
	}
	var err error
	if query.After, query.Before, query.Limit, err = p.events(); err != nil {
		return nil, err
	}
	query.FromEnd = last != nil
	if err := cmp.Or(
		params.CheckSlug("category", orZero(category)), params.CheckSlug("slug", orZero(slug)),
		checkChangedFields(fields),
	); err != nil {
		return nil, err
	}
	if release != nil && *release < 1 {
		return nil, problem.New(problem.BadInput, "release must be at least 1 (got %d).", *release)
	}
	if afterRelease != nil {
		if err := params.CheckRange("afterRelease", *afterRelease, 0, 999_999_999); err != nil {
			return nil, err
		}
	}
	// The journal stores "" for releases and ignores empty lists.
	matchesNothing := isEmpty(types) || isEmpty(fields) ||
		category != nil && *category == "" || slug != nil && *slug == ""
	if category != nil {
		query.Categories = []string{*category}
	}
	if slug != nil {
		query.Slug = *slug
	}
	var numbers []int
	more := false
	if r.limitReleases(&query, since, until, release, afterRelease) && !matchesNothing {
		if numbers, more, err = journal.Find(ctx, r.database().JournalEntry, query); err != nil {
			return nil, err
		}
	}
	r.noteCategory(category, len(numbers) == 0)
	if slug != nil && len(numbers) == 0 {
		if err := r.noteSlug(ctx, *slug); err != nil {
			return nil, err
		}
	}
	read, err := r.readChanges(ctx, numbers)
	if err != nil {
		return nil, err
	}
	c, err := r.changeConnection(ctx, p, numbers, more, read)
	if err == nil {
		r.next = orZero(c.NextCursor)
	}
	return c, err
}

// noteSlug notes a slug that no event is about, with the one that is probably meant.
func (r *reader) noteSlug(ctx context.Context, slug string) error {
	if r.Info == nil || r.Tool(slug) != nil || r.IsComparison(slug) || r.Category(slug) != nil {
		return nil
	}
	numbers, _, err := journal.Find(ctx, r.database().JournalEntry, journal.Query{Slug: slug, UpTo: r.Number(), Limit: 1})
	if err == nil && len(numbers) == 0 {
		r.note("slug", []string{slug}, func(string) bool { return false }, r.nearestSlug)
	}
	return err
}

// selectsStates reports whether the connection of changes being resolved needs their
// states, which may be large.
func selectsStates(ctx context.Context) bool {
	return selects(ctx, "events", "nodes.fields", "nodes.before", "nodes.after",
		"edges.node.fields", "edges.node.before", "edges.node.after")
}

// readChanges reads the events of connections, if the field being resolved selects them.
func (r *reader) readChanges(ctx context.Context, numbers []int) (map[int]change, error) {
	if !selects(ctx, "events", "nodes", "edges.node") {
		return nil, nil
	}
	changes, err := r.changesAt(ctx, numbers, selectsStates(ctx))
	for _, number := range numbers {
		if err == nil && changes[number].event == nil {
			err = fmt.Errorf("event %d is missing", number)
		}
	}
	return changes, err
}

// changeConnection returns the part of a connection with the given events.
func (r *reader) changeConnection(
	ctx context.Context, p paging, numbers []int, more bool, read map[int]change,
) (*model.ChangeConnection, error) {
	c := connection[*model.Change]{info: p.info(more)}
	c.nodes = model.Map(numbers, func(number int) *model.Change { return read[number].Change })
	c.setCursors(ctx, len(numbers), func(i int) string { return journal.ID(numbers[i]) })
	found := &model.ChangeConnection{
		Edges: edgesOf[model.ChangeEdge](c), Nodes: c.nodes, PageInfo: c.info, NextCursor: c.info.EndCursor,
	}
	if selects(ctx, "events") {
		found.Events = model.Map(numbers, func(number int) json.RawMessage { return read[number].event.JSON() })
	}
	if found.NextCursor == nil && p.after != nil && *p.after != "" {
		found.NextCursor = p.after
	}
	if found.NextCursor != nil || !selects(ctx, "nextCursor") {
		return found, nil
	}
	var err error
	found.NextCursor, err = r.newestEvent(ctx)
	return found, err
}

// newestEvent returns the ID of the last event of the release being read; nil before
// the first.
func (r *reader) newestEvent(ctx context.Context) (*string, error) {
	query := journal.Query{Types: []string{journal.EventCatalogPublished}, NewestFirst: true, Limit: 1}
	if !r.limitReleases(&query, nil, nil, nil, nil) {
		return nil, nil
	}
	numbers, _, err := journal.Find(ctx, r.database().JournalEntry, query)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	id := journal.ID(numbers[0])
	return &id, nil
}

// isEmpty reports whether a list is given and empty.
func isEmpty[V any](list []V) bool { return list != nil && len(list) == 0 }

// events returns the numbers of the events before and after a part, or 0, and the
// maximum number of events.
func (p *paging) events() (after, before, limit int, err error) {
	if limit, err = p.check(); err != nil {
		return 0, 0, 0, err
	}
	number := func(name string, id *string) (number int) {
		if id == nil {
			return 0
		}
		number, ok := journal.ParseID(*id)
		if !ok {
			err = problem.New(problem.BadInput, "%s must be an event ID, such as evt_42.", name)
		}
		return number
	}
	return number("after", p.after), number("before", p.before), limit, err
}

const maxChangedFields = 20

func checkChangedFields(fields []string) error {
	if len(fields) > maxChangedFields {
		return problem.New(problem.BadInput, "fields must have at most %d names (got %d).",
			maxChangedFields, len(fields))
	}
	for _, name := range fields {
		if !slices.Contains(journal.FieldNames, name) {
			return problem.New(problem.BadInput, "fields: there is no field %q. The fields are: %s.",
				params.Truncate(name), strings.Join(journal.FieldNames, ", "))
		}
	}
	return nil
}

// limitReleases limits a query to the given releases and days, up to the release
// being read. It returns false if no release matches.
func (r *reader) limitReleases(query *journal.Query, since, until *string, release, afterRelease *int) bool {
	if r.Info == nil {
		return false
	}
	query.From, query.UpTo = r.PublishedBetween(since, until)
	if release != nil {
		query.From, query.UpTo = max(query.From, *release), min(query.UpTo, *release)
	}
	if afterRelease != nil && *afterRelease >= query.From {
		query.From = *afterRelease + 1
	}
	query.Earlier = query.UpTo < r.executor.InMemory().Number()
	return query.From <= query.UpTo
}

// EventSchemas returns the types of events, and the JSON Schemas of their objects.
func EventSchemas() (types []string, schemas map[string]map[string]any) {
	return journal.Events, journal.RESTSchemas()
}

// change is an event as it is stored and as an object.
type change struct {
	event *journal.Event
	*model.Change
}

// changesAt returns the changes with the given numbers that exist.
func (r *reader) changesAt(ctx context.Context, numbers []int, withStates bool) (map[int]change, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	read := journal.WithoutStates
	if withStates {
		read = journal.ByNumbers
	}
	events, err := read(ctx, r.database().JournalEntry, numbers)
	if err != nil {
		return nil, err
	}
	changes := make(map[int]change, len(events))
	for i, object := range r.Changes(events) {
		changes[events[i].Number] = change{events[i], object}
	}
	return changes, nil
}
