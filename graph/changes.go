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
	"palmares/internal/catalog/release"
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
		NewestFirst: order == model.ChangeOrderNewestFirst, Types: mapSlice(types, eventName), Fields: fields,
	}
	var err error
	if query.After, query.Before, query.Limit, err = p.events(); err != nil {
		return nil, err
	}
	query.FromEnd = last != nil
	if err := cmp.Or(
		checkSlugs(argument{"category", category}, argument{"slug", slug}), checkChangedFields(fields),
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
	found, err := r.changeConnections(ctx, []*model.PageInfo{p.info(more)}, [][]int{numbers}, after, selected(ctx))
	if err != nil {
		return nil, err
	}
	r.next = orZero(found[0].NextCursor)
	return found[0], nil
}

// changeConnections returns connections of the events with the given numbers. All
// of them start after the same cursor.
func (r *reader) changeConnections(
	ctx context.Context, infos []*model.PageInfo, parts [][]int, after *string, s selection,
) ([]*model.ChangeConnection, error) {
	c := mapSlice(infos, func(info *model.PageInfo) connection[*model.Change] {
		return connection[*model.Change]{info: info}
	})
	if err := fillConnections(ctx, c, parts, journal.ID, r.changesAt, s); err != nil {
		return nil, err
	}
	found := mapSlice(c, func(c connection[*model.Change]) *model.ChangeConnection {
		return &model.ChangeConnection{Edges: edgesOf[model.ChangeEdge](c), Nodes: c.nodes, PageInfo: c.info}
	})
	if s.has("events") {
		events, err := r.eventsAt(ctx, slices.Concat(parts...), true)
		if err != nil {
			return nil, err
		}
		for i, numbers := range parts {
			found[i].Events = mapSlice(events[:len(numbers)], func(e *journal.Event) json.RawMessage { return e.JSON() })
			events = events[len(numbers):]
		}
	}
	if !s.has("nextCursor") {
		return found, nil
	}
	for _, c := range found {
		if c.NextCursor = c.PageInfo.EndCursor; c.NextCursor == nil && after != nil && *after != "" {
			c.NextCursor = after
		}
		if c.NextCursor == nil {
			newest, err := r.newestEvent(ctx)
			if err != nil {
				return nil, err
			}
			c.NextCursor = newest
		}
	}
	return found, nil
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
	if r.release.Info == nil {
		return false
	}
	query.From, query.UpTo = r.release.PublishedBetween(since, until)
	if release != nil {
		query.From, query.UpTo = max(query.From, *release), min(query.UpTo, *release)
	}
	if afterRelease != nil && *afterRelease >= query.From {
		query.From = *afterRelease + 1
	}
	query.Earlier = query.UpTo < r.executor.catalog.InMemory().Number()
	return query.From <= query.UpTo
}

// eventName and changeType convert between event types, which have dots, and
// GraphQL names, which cannot.
func eventName(t model.ChangeType) string { return strings.ReplaceAll(string(t), "_", ".") }
func changeType(event string) model.ChangeType {
	return model.ChangeType(strings.ReplaceAll(event, ".", "_"))
}

// events returns the events with the given numbers, oldest first.
func (r *reader) events(ctx context.Context, numbers []int, withStates bool) ([]*journal.Event, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	if withStates {
		return journal.ByNumbers(ctx, r.database().JournalEntry, numbers)
	}
	return journal.WithoutStates(ctx, r.database().JournalEntry, numbers)
}

// eventsAt returns the events with the given numbers, in the same order.
func (r *reader) eventsAt(ctx context.Context, numbers []int, withStates bool) ([]*journal.Event, error) {
	events, err := r.events(ctx, numbers, withStates)
	if err != nil {
		return nil, err
	}
	byNumber := make(map[int]*journal.Event, len(events))
	for _, e := range events {
		byNumber[e.Number] = e
	}
	ordered := make([]*journal.Event, len(numbers))
	for i, number := range numbers {
		if ordered[i] = byNumber[number]; ordered[i] == nil {
			return nil, fmt.Errorf("event %d is missing", number)
		}
	}
	return ordered, nil
}

var changeTypes = []string{"Change", "Node"}

// hasStates reports whether a selection of changes needs their states, which are
// only read if they are selected.
func (s selection) hasStates() bool { return s.as(changeTypes).has("fields", "before", "after") }

// changesAt returns the changes with the given numbers, in the same order.
func (r *reader) changesAt(ctx context.Context, numbers []int, s selection) ([]*model.Change, error) {
	events, err := r.eventsAt(ctx, numbers, s.hasStates())
	if err != nil {
		return nil, err
	}
	return r.readChanges(ctx, events, s)
}

// readChanges converts events and reads the selected tools.
func (r *reader) readChanges(ctx context.Context, events []*journal.Event, s selection) ([]*model.Change, error) {
	s = s.as(changeTypes)
	changes := mapSlice(events, func(e *journal.Event) *model.Change {
		return &model.Change{
			ID: e.ID(), Type: changeType(e.Type), Release: e.Release, PublishedAt: e.At,
			Slug: orNil(e.Slug), Category: orNil(e.Category), OtherCategory: orNil(e.OtherCategory),
			Fields: e.Fields, Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
		}
	})
	if !s.has("tool") {
		return changes, nil
	}
	changed := map[string][]*model.Change{}
	var found []*release.Tool
	for i, e := range events {
		// A comparison may have the slug of a tool.
		if t := r.release.Tool(e.Slug); t != nil && e.AboutTool() && t.Active() {
			if changed[e.Slug] == nil {
				found = append(found, t)
			}
			changed[e.Slug] = append(changed[e.Slug], changes[i])
		}
	}
	tools, err := r.readTools(ctx, found, s.of("tool"))
	for _, t := range tools {
		for _, c := range changed[t.Slug] {
			c.Tool = t
		}
	}
	return changes, err
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
