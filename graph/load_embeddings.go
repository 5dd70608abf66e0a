package graph

import (
	"context"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/graph/model"
)

// document reads one embeddings document; nil outside the top set.
func (r *reading) document(ctx context.Context, slug string, s selection) (*model.EmbeddingsDocument, error) {
	if err := checkText("slug", slug, maxSlugText); err != nil {
		return nil, err
	}
	rows, err := r.toolRows(ctx, toolQuery{
		columns: append([]string{tool.FieldID}, toolColumns["embeddings"]...),
		where:   []predicate.Tool{tool.ID(slug), tool.InEmbeddings(true)},
	})
	if err != nil {
		return nil, err
	}
	documents, err := r.documentsOf(ctx, rows, s)
	return documents[slug], err
}

// documentsOf reads the documents of those tools that have one.
func (r *reading) documentsOf(ctx context.Context, rows []*ent.Tool, s selection) (map[string]*model.EmbeddingsDocument, error) {
	documents := map[string]*model.EmbeddingsDocument{}
	owners := map[string]*ent.Tool{}
	var slugs []string
	for _, row := range rows {
		if row.InEmbeddings {
			slugs = append(slugs, row.ID)
			owners[row.ID] = row
			documents[row.ID] = &model.EmbeddingsDocument{
				Slug: row.ID, Name: row.Name, CanonicalURL: reviewURL(row), Hash: row.SectionsHash,
				UpdatedAt: row.UpdatedAt, Chunks: []*model.Chunk{},
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
		document := documents[row.ToolSlug]
		document.Chunks = append(document.Chunks, chunkModel(row, owners[row.ToolSlug]))
		document.ChunkCount++
	}
	return documents, nil
}

// reviewURL is the page of the review, or the tool's where there is none.
func reviewURL(row *ent.Tool) string {
	if row.AvisURL != nil {
		return *row.AvisURL
	}
	return row.CanonicalURL
}

func chunkModel(row *ent.Section, owner *ent.Tool) *model.Chunk {
	return &model.Chunk{ID: row.Section, Text: row.Text, Metadata: &model.ChunkMetadata{
		Slug: owner.ID, Section: row.Section, Position: row.Position, CanonicalURL: reviewURL(owner) + "#" + row.Section,
		Tool: owner.Name, Category: owner.CategorySlug, Score: owner.Score, Verifiability: owner.Verifiability,
		UpdatedAt: owner.UpdatedAt,
	}}
}
