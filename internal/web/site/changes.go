package site

import (
	"context"
	"slices"

	"palmares/internal/web/page"
)

const changesPath = "/changes"

// changesView lists the editions and the changes of the newest one or, if the URL
// selects some, the changes of all editions.
type changesView struct {
	Feed     feedInfo
	Changes  eventList
	Releases struct {
		Nodes      []release
		TotalCount int
		PageInfo   cursorInfo
	}
	Categories categoryList
	Choices    []choice        `json:"-"`
	Editions   []editionEvents `json:"-"`
	Newest     *edition        `json:"-"` // nil if the URL selects changes
	ToolName   string          `json:"-"` // of the tool that the page is limited to
	Feeds      []page.Feed     `json:"-"` // feeds of what the page is limited to
	Older      string          `json:"-"` // URL of the next page, or ""
}

// choice is an option of a filter.
type choice struct{ Value, Name string }

func (v *changesView) prepare(ctx context.Context, s *Site, r *request) (err error) {
	selected := r.Param("type") + r.Param("category") + r.Param("tool")
	if release := r.Param("release"); release != "" && selected == "" {
		return redirect(editionPath(release))
	}
	for _, kind := range append(slices.Clone(eventKinds), catalogPublished) {
		v.Choices = append(v.Choices, choice{kind, r.lang.Text(titleOf(kind))})
	}
	if selected == "" {
		if r.Param("before") == "" {
			v.Newest, err = s.editionOf(ctx, r, v.Feed.Release)
		}
		for i := range max(len(v.Releases.Nodes)-1, 0) {
			newer, older := &v.Releases.Nodes[i], v.Releases.Nodes[i+1].Stats
			newer.Delta.Tools = newer.Stats.ToolsTotal - older.ToolsTotal
			newer.Delta.Retired = newer.Stats.ToolsRetired - older.ToolsRetired
			newer.Delta.Comparisons = newer.Stats.ComparisonsTotal - older.ComparisonsTotal
		}
		if err == nil {
			err = v.addHeadlines(ctx, s, r)
		}
		if v.Releases.PageInfo.HasNextPage {
			v.Older = r.With("before", v.Releases.PageInfo.EndCursor)
		}
		return err
	}
	if r.Param("tool") != "" { // comparisons and categories may have the same slug
		v.Changes.Nodes = slices.DeleteFunc(v.Changes.Nodes, func(e event) bool { return e.subject() != "tool" })
	}
	if v.Editions, err = s.byEdition(ctx, r, v.Changes.Nodes); err != nil {
		return err
	}
	if r.Param("type") == "" {
		for i := range v.Editions {
			v.Editions[i].shorten(r)
		}
	}
	if v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	if slug := r.Param("tool"); slug != "" {
		v.ToolName = r.toolName(slug, 0)
		v.Feeds = append(v.Feeds, toolFeed(r, slug, v.ToolName))
	}
	if slug := r.Param("category"); r.shown.Category(slug) != nil {
		v.Feeds = append(v.Feeds, categoryFeed(r, slug, r.named(slug).Label))
	}
	r.feeds = v.Feeds
	return nil
}

// addHeadlines adds what older editions changed most, if that is known from the events that one
// operation returns.
func (v *changesView) addHeadlines(ctx context.Context, s *Site, r *request) error {
	for i := range v.Releases.Nodes {
		var one editionView
		node := &v.Releases.Nodes[i]
		if node.Number == 1 || v.Newest != nil && node.Number == v.Newest.Number {
			continue
		}
		if err := s.execute(ctx, r.asOf, "edition", map[string]any{"number": node.Number}, &one); err != nil {
			return err
		}
		if one.Changes.PageInfo.HasNextPage {
			continue
		}
		editions, err := s.byEdition(ctx, r, one.Changes.Nodes)
		if err != nil {
			return err
		}
		if len(editions) > 0 {
			node.Headline = editions[0].Headline
		}
	}
	return nil
}
