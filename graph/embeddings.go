package graph

import (
	"context"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/graph/model"
)

func (queryResolver) Embeddings(ctx context.Context, slug string) (*model.EmbeddingsDocument, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	r := readerFrom(ctx)
	rows, err := r.toolRows(ctx, toolQuery{
		columns: append([]string{tool.FieldID}, toolFields.columns["embeddings"]...),
		where:   []predicate.Tool{tool.ID(slug), tool.InEmbeddings(true)},
	})
	if err != nil {
		return nil, err
	}
	documents, err := r.embeddingsOf(ctx, rows, selected(ctx))
	return documents[slug], err
}

// embeddingsOf reads the documents of the tools that have one, by slug.
func (r *reader) embeddingsOf(ctx context.Context, rows []*ent.Tool, s selection) (map[string]*model.EmbeddingsDocument, error) {
	documents := map[string]*model.EmbeddingsDocument{}
	tools := map[string]*ent.Tool{}
	var slugs []string
	for _, row := range rows {
		if row.InEmbeddings {
			slugs = append(slugs, row.ID)
			tools[row.ID] = row
			documents[row.ID] = &model.EmbeddingsDocument{
				Slug: row.ID, Name: row.Name, CanonicalURL: reviewURL(row), Hash: row.SectionsHash, UpdatedAt: row.UpdatedAt,
			}
		}
	}
	if len(slugs) == 0 || !s.has("chunks", "chunkCount") {
		return documents, nil
	}
	sections, err := r.client.Section.Query().Where(section.ToolSlugIn(slugs...)).
		Order(section.ByToolSlug(), section.ByPosition()).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range sections {
		t, document := tools[row.ToolSlug], documents[row.ToolSlug]
		document.ChunkCount++
		document.Chunks = append(document.Chunks, &model.Chunk{ID: row.Section, Text: row.Text, Metadata: &model.ChunkMetadata{
			Slug: t.ID, Section: row.Section, Position: row.Position, CanonicalURL: reviewURL(t) + "#" + row.Section,
			Tool: t.Name, Category: t.CategorySlug, Score: t.Score, Verifiability: t.Verifiability, UpdatedAt: t.UpdatedAt,
		}})
	}
	return documents, nil
}

// reviewURL returns the page of a tool's review, or the tool's own page.
func reviewURL(row *ent.Tool) string {
	if row.AvisURL != nil {
		return *row.AvisURL
	}
	return row.CanonicalURL
}
