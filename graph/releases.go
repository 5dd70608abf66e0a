package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
)

// Releases lists the releases up to the one being read.
func (queryResolver) Releases(
	ctx context.Context, first *int, after *string, last *int, before *string,
) (*model.ReleaseConnection, error) {
	r := readerFrom(ctx)
	releases := &list[*ent.Release, *model.Release]{
		name: "releases", items: r.release.All, order: release.ByNumber{}, nodes: r.readReleases,
	}
	c, err := releases.connection(ctx, first, after, last, before)
	return &model.ReleaseConnection{
		Edges: edgesOf[model.ReleaseEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

func (r *reader) readReleases(_ context.Context, releases []*ent.Release, _ selection) ([]*model.Release, error) {
	historyFrom := r.release.HistoryFrom()
	return mapSlice(releases, func(release *ent.Release) *model.Release {
		return &model.Release{
			ID: r.pin(releaseID(release.ID)), Number: release.ID,
			Date: release.FeedDate, PublishedAt: release.ImportedAt,
			Readable: release.ID >= historyFrom, Stats: statistics(release),
		}
	}), nil
}

func (queryResolver) ToolVersions(ctx context.Context, slug string, limit int) (*model.ToolVersions, error) {
	if err := cmp.Or(
		checkText("slug", slug, maxSlugText), params.CheckRange("limit", limit, 1, document.MaxPageSize),
	); err != nil {
		return nil, err
	}
	found, err := readerFrom(ctx).versions(ctx, []string{slug}, limit)
	if err != nil || len(found[slug]) == 0 {
		return nil, err
	}
	return &model.ToolVersions{Slug: slug, Versions: found[slug]}, nil
}

// readVersions reads the versions of tools for some fields.
func (r *reader) readVersions(
	ctx context.Context, tools []*release.Tool, fields []graphql.CollectedField, s selection,
) (err error) {
	limits := make([]int, len(fields))
	for i, field := range fields {
		if limits[i], err = s.limit(field, document.MaxPageSize); err != nil {
			return err
		}
	}
	slugs := mapSlice(tools, func(t *release.Tool) string { return t.Slug })
	found, err := r.versions(ctx, slugs, slices.Max(limits))
	for i, field := range fields {
		for _, slug := range slugs {
			r.setNested(field, toolID(slug), found[slug][:min(limits[i], len(found[slug]))])
		}
	}
	return err
}

// versions returns the newest versions of each tool from the journal, up to the
// release being read.
func (r *reader) versions(ctx context.Context, slugs []string, limit int) (map[string][]*model.ToolVersion, error) {
	versions := map[string][]*model.ToolVersion{}
	if r.release.Info == nil || len(slugs) == 0 {
		return versions, nil
	}
	events, err := r.journalOf(slugs).Versions(ctx, limit)
	if err != nil {
		return nil, err
	}
	until := map[string]*int{} // the release that ended a tool's next version
	for _, e := range slices.Backward(events) {
		v := &model.ToolVersion{
			FirstRelease: e.Release, LastRelease: until[e.Slug],
			Date: r.release.All[r.release.Number()-e.Release].FeedDate,
			Type: changeType(e.Type), Fields: e.Fields,
			Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
		}
		last := e.Release - 1
		until[e.Slug] = &last
		if e.Type != journal.EventToolRemoved && len(versions[e.Slug]) < limit {
			versions[e.Slug] = append(versions[e.Slug], v)
		}
	}
	return versions, nil
}
