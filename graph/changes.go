package graph

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Changes(ctx context.Context, firstN *int, after *string, last *int, before *string, types []model.ChangeType, category, slug, since, until *string, release *int, fields []string, order model.ChangeOrder) (*model.ChangeConnection, error) {
	first := defaultPageSize
	if firstN != nil {
		first = *firstN
	}
	if err := params.CheckRange("first", first, 1, maxPageSize); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	query := journal.Query{NewestFirst: order == model.ChangeOrderNewestFirst, Limit: first, Types: mapSlice(types, eventName)}
	matchesNothing := types != nil && len(types) == 0 || r.release == nil
	if after != nil {
		number, ok := journal.ParseID(*after)
		if !ok {
			return nil, problem.New(problem.BadInput, "after must be the id of an event, such as evt_42.")
		}
		query.After = number
	}
	if category != nil {
		if err := checkText("category", *category, maxSlugText); err != nil {
			return nil, err
		}
		query.Categories = []string{*category}
		matchesNothing = matchesNothing || *category == "" // the journal has "" for releases
	}
	c := connection[*model.Change]{info: &model.PageInfo{HasPreviousPage: after != nil}}
	var events []*journal.Event
	if !matchesNothing {
		query.UpTo = r.release.ID
		var err error
		if events, c.info.HasNextPage, err = journal.Page(ctx, r.client.JournalEntry, query); err != nil {
			return nil, err
		}
	}
	err := readConnection(ctx, &c, events, (*journal.Event).ID, r.fillChanges)
	return &model.ChangeConnection{Edges: edgesOf[model.ChangeEdge](c), Nodes: c.nodes, PageInfo: c.info}, err
}

// eventName and changeType convert between event types, which have dots, and
// GraphQL names, which cannot.
func eventName(t model.ChangeType) string { return strings.ReplaceAll(string(t), "_", ".") }
func changeType(event string) model.ChangeType {
	return model.ChangeType(strings.ReplaceAll(event, ".", "_"))
}

// fillChanges converts events and reads the selected tools.
func (r *reader) fillChanges(ctx context.Context, events []*journal.Event, s selection) ([]*model.Change, error) {
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
	var positions []int
	for _, e := range events {
		if i, ok := r.index.find(e.Slug); ok && e.AboutTool() && r.index.tools[i].active() { // a comparison may have the slug of a tool
			positions = append(positions, i)
		}
	}
	positions = distinct(positions)
	tools, err := r.fillTools(ctx, positions, s.of("tool"))
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		position, known := r.index.find(e.Slug)
		if at, ok := slices.BinarySearch(positions, position); ok && known && e.AboutTool() {
			changes[i].Tool = tools[at]
		}
	}
	return changes, nil
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
