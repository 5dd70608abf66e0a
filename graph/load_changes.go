package graph

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
)

// changesQuery is what is asked of the journal, checked.
type changesQuery struct {
	journal.Query
	none  bool // no type is wanted
	slice *slice
}

func newChangesQuery(first int, after *string, types []model.ChangeType, category *string, order model.ChangeOrder) (*changesQuery, error) {
	if err := checkRange("first", first, 1, maxSlice); err != nil {
		return nil, err
	}
	q := &changesQuery{slice: &slice{size: first}, none: types != nil && len(types) == 0}
	q.NewestFirst, q.Limit = order == model.ChangeOrderNewestFirst, first
	if after != nil {
		number, ok := journal.ParseID(*after)
		if !ok {
			return nil, problem.New(problem.BadInput, "after: is not the id of an event, such as evt_42.")
		}
		q.After, q.slice.after = number, []any{number}
	}
	q.Types = mapped(types, eventOfType)
	if category != nil {
		if err := checkText("category", *category, maxSlugText); err != nil {
			return nil, err
		}
		q.Categories = []string{*category}
		q.none = q.none || *category == "" // which releases have, and no tool
	}
	return q, nil
}

// GraphQL's names have no dots.
func eventOfType(t model.ChangeType) string { return strings.ReplaceAll(string(t), "_", ".") }
func typeOfEvent(event string) model.ChangeType {
	return model.ChangeType(strings.ReplaceAll(event, ".", "_"))
}

// changes reads a slice of the journal, as far as the operation's release.
func (r *reading) changes(ctx context.Context, q *changesQuery, s selection) (*model.ChangeConnection, error) {
	c, err := connect(s, q.slice, connected[*journal.Event, *model.Change, *model.ChangeEdge]{
		read: func(selection) (events []*journal.Event, err error) {
			if q.none || r.release == nil {
				return nil, nil
			}
			q.UpTo = r.release.ID
			events, q.slice.more, err = journal.Page(ctx, r.client.JournalEntry, q.Query)
			return events, err
		},
		fill: func(events []*journal.Event, asked selection) ([]*model.Change, error) {
			return r.fillChanges(ctx, events, asked)
		},
		cursor: (*journal.Event).ID,
		edge: func(cursor string, node *model.Change) *model.ChangeEdge {
			return &model.ChangeEdge{Cursor: cursor, Node: node}
		},
	})
	return &model.ChangeConnection{Edges: c.edges, Nodes: c.nodes, PageInfo: c.info}, err
}

func changeModel(e *journal.Event) *model.Change {
	return &model.Change{
		ID: e.ID(), Type: typeOfEvent(e.Type), Release: e.Release, PublishedAt: e.At,
		Slug: orNil(e.Slug), Category: orNil(e.Category), OtherCategory: orNil(e.OtherCategory),
		Fields: append([]string{}, e.Fields...), Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
	}
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// fillChanges turns events into changes with the tools they are about, read
// together.
func (r *reading) fillChanges(ctx context.Context, events []*journal.Event, s selection) ([]*model.Change, error) {
	changes := mapped(events, changeModel)
	if !s.has("tool") {
		return changes, nil
	}
	var slugs []string
	for _, e := range events {
		if e.AboutTool() {
			slugs = append(slugs, e.Slug)
		}
	}
	slices.Sort(slugs)
	if slugs = slices.Compact(slugs); len(slugs) == 0 {
		return changes, nil
	}
	tools, err := r.tools(ctx, s.of("tool"), toolQuery{where: []predicate.Tool{tool.IDIn(slugs...), tool.RetiredAtIsNil()}})
	if err != nil {
		return nil, err
	}
	bySlug := make(map[string]*model.Tool, len(tools))
	for _, t := range tools {
		bySlug[t.Slug] = t
	}
	for i, e := range events {
		if e.AboutTool() { // a comparison may have a tool's slug
			changes[i].Tool = bySlug[e.Slug]
		}
	}
	return changes, nil
}
