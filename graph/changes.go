package graph

import (
	"context"
	"encoding/json"
	"strings"

	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

func (queryResolver) Changes(ctx context.Context, first int, after *string, types []model.ChangeType, category *string, order model.ChangeOrder) (*model.ChangeConnection, error) {
	if err := params.CheckRange("first", first, 1, maxPageSize); err != nil {
		return nil, err
	}
	r, w := readerFrom(ctx), &window{}
	query := journal.Query{NewestFirst: order == model.ChangeOrderNewestFirst, Limit: first, Types: mapSlice(types, eventName)}
	matchesNothing := types != nil && len(types) == 0 || r.release == nil
	if after != nil {
		number, ok := journal.ParseID(*after)
		if !ok {
			return nil, problem.New(problem.BadInput, "after must be the id of an event, such as evt_42.")
		}
		query.After, w.after = number, []any{number}
	}
	if category != nil {
		if err := checkText("category", *category, maxSlugText); err != nil {
			return nil, err
		}
		query.Categories = []string{*category}
		matchesNothing = matchesNothing || *category == "" // the journal has "" for releases
	}
	changes := &list[*journal.Event, *model.Change]{nodes: r.fillChanges, cursor: (*journal.Event).ID}
	changes.rows = func(w *window, _ selection) (events []*journal.Event, err error) {
		if matchesNothing {
			return nil, nil
		}
		query.UpTo = r.release.ID
		events, w.more, err = journal.Page(ctx, r.client.JournalEntry, query)
		return events, err
	}
	c, err := changes.readConnection(ctx, w, first)
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
	var slugs []string
	for _, e := range events {
		if e.AboutTool() {
			slugs = append(slugs, e.Slug)
		}
	}
	if len(slugs) == 0 {
		return changes, nil
	}
	tools, err := r.tools(ctx, s.of("tool"), tool.IDIn(distinct(slugs)...), tool.RetiredAtIsNil())
	if err != nil {
		return nil, err
	}
	bySlug := make(map[string]*model.Tool, len(tools))
	for _, t := range tools {
		bySlug[t.Slug] = t
	}
	for i, e := range events {
		if e.AboutTool() { // a comparison may have the slug of a tool
			changes[i].Tool = bySlug[e.Slug]
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
