package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

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
		name: "releases", items: r.All, places: release.ByNumber, nodes: r.releases,
	}
	c, err := releases.connection(ctx, paging{first, after, last, before})
	return &model.ReleaseConnection{
		Edges: edgesOf[model.ReleaseEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

func (r *reader) releases(releases []*ent.Release) []*model.Release {
	historyFrom := r.HistoryFrom()
	return mapSlice(releases, func(release *ent.Release) *model.Release {
		return &model.Release{
			ID: r.ID(model.ReleasePrefix, strconv.Itoa(release.ID)), Number: release.ID,
			Date: release.FeedDate, PublishedAt: release.ImportedAt,
			Readable: release.ID >= historyFrom, Stats: statistics(release),
		}
	})
}

func (queryResolver) ToolVersions(ctx context.Context, slug string, limit int) (*model.ToolVersions, error) {
	if err := cmp.Or(
		checkText("slug", slug, maxSlugText), params.CheckRange("limit", limit, 1, document.MaxPageSize),
	); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	found, err := r.versions(ctx, []string{slug}, limit)
	if err != nil || len(found[slug]) == 0 {
		return nil, err
	}
	return &model.ToolVersions{Slug: slug, Versions: found[slug]}, nil
}

func (linksResolver[T]) Versions(ctx context.Context, t T, limit int) ([]*model.ToolVersion, error) {
	if err := params.CheckRange("limit", limit, 1, document.MaxPageSize); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	own := t.InCatalog()
	versions, err := model.Once(own.Siblings, graphql.GetFieldContext(ctx).Field.Field,
		func() (map[string][]*model.ToolVersion, error) {
			return r.versions(ctx, slugsOf(own.Siblings.Items), limit)
		})
	return versions[own.Slug], err
}

// versions returns the newest versions of each tool from the journal, up to the
// release being read.
func (r *reader) versions(ctx context.Context, slugs []string, limit int) (map[string][]*model.ToolVersion, error) {
	versions := map[string][]*model.ToolVersion{}
	if r.Info == nil {
		return versions, nil
	}
	events, err := r.journalOf(slugs...).Versions(ctx, limit)
	if err != nil {
		return nil, err
	}
	until := map[string]*int{} // the release that ended a tool's next version
	for _, e := range slices.Backward(events) {
		v := &model.ToolVersion{
			FirstRelease: e.Release, LastRelease: until[e.Slug],
			Date: r.All[r.Number()-e.Release].FeedDate,
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
