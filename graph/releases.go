package graph

import (
	"cmp"
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
)

// Releases lists the releases up to the one being read.
func (queryResolver) Releases(
	ctx context.Context, first *int, after *string, last *int, before *string,
) (*model.ReleaseConnection, error) {
	r := readerFrom(ctx)
	releases := &list[*ent.Release, *model.Release]{
		name: "releases", items: r.All, places: release.ByNumber, nodes: r.Releases,
	}
	c, err := releases.connection(ctx, paging{first, after, last, before})
	return &model.ReleaseConnection{
		Edges: edgesOf[model.ReleaseEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

func (queryResolver) ToolVersions(ctx context.Context, slug string, limit int) (*model.ToolVersions, error) {
	if err := cmp.Or(
		params.CheckSlug("slug", slug), params.CheckRange("limit", limit, 1, document.MaxPageSize),
	); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	found, err := r.versions(ctx, []string{slug}, limit, false)
	if err != nil || len(found[slug]) == 0 {
		return nil, err
	}
	return &model.ToolVersions{Slug: slug, Versions: found[slug]}, nil
}

func (linksResolver[T]) Versions(ctx context.Context, t T, order model.ChangeOrder, limit int) ([]*model.ToolVersion, error) {
	if err := params.CheckRange("limit", limit, 1, document.MaxPageSize); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	own := t.InCatalog()
	versions, err := model.Once(own.Siblings, graphql.GetFieldContext(ctx).Field.Field,
		func() (map[string][]*model.ToolVersion, error) {
			return r.versions(ctx, slugsOf(own.Siblings.Items), limit, order == model.ChangeOrderOldestFirst)
		})
	return versions[own.Slug], err
}

// versions returns the newest or oldest versions of each tool from the journal, up to the
// release being read.
func (r *reader) versions(
	ctx context.Context, slugs []string, limit int, fromOldest bool,
) (map[string][]*model.ToolVersion, error) {
	if r.Info == nil {
		return nil, nil
	}
	events, err := r.journalOf(slugs...).Versions(ctx, limit, fromOldest)
	versions := r.ToolVersions(events)
	for slug, of := range versions {
		if fromOldest {
			slices.Reverse(of)
		}
		versions[slug] = of[:min(limit, len(of))]
	}
	return versions, err
}
