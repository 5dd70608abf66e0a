package graph

import (
	"context"
	"maps"
	"slices"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/section"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
)

func (queryResolver) Embeddings(ctx context.Context, slug string) (*model.EmbeddingsDocument, error) {
	r := readerFrom(ctx)
	return bySlug(ctx, slug, r.activeTool, r.readEmbeddings)
}

// readEmbeddings returns the documents of tools; nil for those without one.
func (r *reader) readEmbeddings(
	ctx context.Context, found []*release.Tool, s selection,
) ([]*model.EmbeddingsDocument, error) {
	complete, err := r.withDetails(ctx, found)
	if err != nil {
		return nil, err
	}
	tools := newTools(complete)
	err = r.addEmbeddings(ctx, tools, s)
	return mapSlice(tools, func(t *model.Tool) *model.EmbeddingsDocument { return t.Embeddings }), err
}

// addEmbeddings reads the documents of the tools that have one.
func (r *reader) addEmbeddings(ctx context.Context, tools []*model.Tool, s selection) error {
	withDocument := map[string]*model.Tool{}
	for _, t := range tools {
		if t.InEmbeddings {
			withDocument[t.Slug] = t
			t.Embeddings = &model.EmbeddingsDocument{
				Slug: t.Slug, Name: t.Name, CanonicalURL: reviewURL(t), Hash: t.SectionsHash, UpdatedAt: t.UpdatedAt,
			}
		}
	}
	if len(withDocument) == 0 || !s.has("chunks", "chunkCount") {
		return nil
	}
	sections, err := r.sections(section.ToolSlugIn(slices.Sorted(maps.Keys(withDocument))...)).
		Order(section.ByToolSlug(), section.ByPosition()).All(ctx)
	for _, row := range sections {
		t := withDocument[row.ToolSlug]
		t.Embeddings.ChunkCount++
		t.Embeddings.Chunks = append(t.Embeddings.Chunks, &model.Chunk{
			ID: row.Section, Text: row.Text, Metadata: &model.ChunkMetadata{
				Slug: t.Slug, Section: row.Section, Position: row.Position,
				CanonicalURL: reviewURL(t) + "#" + row.Section, Tool: t.Name, Category: t.CategorySlug,
				Score: t.Score, Verifiability: t.Verifiability, UpdatedAt: t.UpdatedAt,
			},
		})
	}
	return err
}

// sections selects sections of the release being read.
func (r *reader) sections(conditions ...predicate.Section) *ent.SectionQuery {
	return r.database().Section.Query().Where(store.Sections.At(r.release.Number())).Where(conditions...)
}

// verdictSection is the section of a review that requires no API key.
const verdictSection = "verdict"

// addReviews reads the selected parts of the tools' reviews: one statement for
// the verdicts, and one for the sections without their text.
func (r *reader) addReviews(ctx context.Context, tools []*model.Tool, s selection) error {
	verdicts, sections := map[string]string{}, map[string][]string{}
	for slugs := range slices.Chunk(
		distinct(mapSlice(tools, func(t *model.Tool) string { return t.Slug })), release.MaxParameters,
	) {
		if s.has("verdict") {
			rows, err := r.sections(section.ToolSlugIn(slugs...), section.Section(verdictSection)).
				Select(section.FieldToolSlug, section.FieldText).All(ctx)
			if err != nil {
				return err
			}
			for _, row := range rows {
				verdicts[row.ToolSlug] = row.Text
			}
		}
		if s.has("reviewSections") {
			rows, err := r.sections(section.ToolSlugIn(slugs...)).
				Order(section.ByToolSlug(), section.ByPosition()).
				Select(section.FieldToolSlug, section.FieldSection).All(ctx)
			if err != nil {
				return err
			}
			for _, row := range rows {
				sections[row.ToolSlug] = append(sections[row.ToolSlug], row.Section)
			}
		}
	}
	for _, t := range tools {
		if verdict, ok := verdicts[t.Slug]; ok {
			t.Verdict = &verdict
		}
		if t.ReviewSections = sections[t.Slug]; t.ReviewSections == nil {
			t.ReviewSections = []string{}
		}
	}
	return nil
}

// reviewURL returns the page of a tool's review, or the tool's own page.
func reviewURL(t *model.Tool) string {
	if t.AvisURL != nil {
		return *t.AvisURL
	}
	return t.CanonicalURL
}
