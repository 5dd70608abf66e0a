package graph

import (
	"context"
	"maps"
	"slices"

	"palmares/ent/section"
	"palmares/graph/model"
)

func (queryResolver) Embeddings(ctx context.Context, slug string) (*model.EmbeddingsDocument, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	i, ok := r.index.find(slug)
	if !ok || !r.index.tools[i].active() {
		return nil, nil
	}
	entities, err := r.entities(ctx, []int{i}, false)
	if err != nil {
		return nil, err
	}
	t := *entities[0].tool
	err = r.fillEmbeddings(ctx, []*model.Tool{&t}, entities, selected(ctx))
	return t.Embeddings, err
}

// fillEmbeddings reads the documents of the tools that have one.
func (r *reader) fillEmbeddings(ctx context.Context, tools []*model.Tool, entities []*entity, s selection) error {
	withDocument := map[string]*model.Tool{}
	for i, t := range tools {
		if entities[i].inEmbeddings {
			withDocument[t.Slug] = t
			t.Embeddings = &model.EmbeddingsDocument{
				Slug: t.Slug, Name: t.Name, CanonicalURL: reviewURL(t), Hash: entities[i].sectionsHash, UpdatedAt: t.UpdatedAt,
			}
		}
	}
	if len(withDocument) == 0 || !s.has("chunks", "chunkCount") {
		return nil
	}
	sections, err := r.client.Section.Query().Where(section.ToolSlugIn(slices.Sorted(maps.Keys(withDocument))...)).
		Order(section.ByToolSlug(), section.ByPosition()).All(ctx)
	for _, row := range sections {
		t := withDocument[row.ToolSlug]
		t.Embeddings.ChunkCount++
		t.Embeddings.Chunks = append(t.Embeddings.Chunks, &model.Chunk{ID: row.Section, Text: row.Text, Metadata: &model.ChunkMetadata{
			Slug: t.Slug, Section: row.Section, Position: row.Position, CanonicalURL: reviewURL(t) + "#" + row.Section,
			Tool: t.Name, Category: t.CategorySlug, Score: t.Score, Verifiability: t.Verifiability, UpdatedAt: t.UpdatedAt,
		}})
	}
	return err
}

// verdictSection is the section of a review that requires no API key.
const verdictSection = "verdict"

// fillReviews reads the selected parts of the tools' reviews: one statement for
// the verdicts, and one for the sections without their text.
func (r *reader) fillReviews(ctx context.Context, tools []*model.Tool, s selection) error {
	verdicts, sections := map[string]string{}, map[string][]string{}
	for slugs := range slices.Chunk(distinct(mapSlice(tools, func(t *model.Tool) string { return t.Slug })), maxParameters) {
		if s.has("verdict") {
			rows, err := r.client.Section.Query().Where(section.ToolSlugIn(slugs...), section.Section(verdictSection)).
				Select(section.FieldToolSlug, section.FieldText).All(ctx)
			if err != nil {
				return err
			}
			for _, row := range rows {
				verdicts[row.ToolSlug] = row.Text
			}
		}
		if s.has("reviewSections") {
			rows, err := r.client.Section.Query().Where(section.ToolSlugIn(slugs...)).
				Order(section.ByToolSlug(), section.ByPosition()).Select(section.FieldToolSlug, section.FieldSection).All(ctx)
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
