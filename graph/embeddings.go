package graph

import (
	"context"
	"slices"

	"palmares/ent"
	"palmares/ent/section"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

func (queryResolver) Embeddings(ctx context.Context, slug string) (*model.EmbeddingsDocument, error) {
	r := readerFrom(ctx)
	tool, err := bySlug(slug, r.activeTool, r.Tools)
	if tool == nil {
		return nil, err
	}
	return tool.Embeddings(), nil
}

func (embeddingsResolver) ChunkCount(ctx context.Context, d *model.EmbeddingsDocument) (int, error) {
	sections, err := readerFrom(ctx).documentSections(ctx, d)
	return len(sections), err
}

func (embeddingsResolver) Chunks(ctx context.Context, d *model.EmbeddingsDocument) ([]*model.Chunk, error) {
	sections, err := readerFrom(ctx).documentSections(ctx, d)
	return model.Map(sections, func(row *ent.Section) *model.Chunk {
		return &model.Chunk{
			ID: row.Section, Text: row.Text, Metadata: &model.ChunkMetadata{
				Slug: d.Slug, Section: row.Section, Position: row.Position,
				CanonicalURL: d.CanonicalURL() + "#" + row.Section, Tool: d.Name, Category: d.CategorySlug(),
				Score: d.Score(), Verifiability: d.Verifiability(), UpdatedAt: d.UpdatedAt,
			},
		}
	}), err
}

// documentSections returns the sections of a document, in order.
func (r *reader) documentSections(ctx context.Context, d *model.EmbeddingsDocument) ([]*ent.Section, error) {
	sections, err := model.Once(d.Siblings, "documents", func() (map[string][]*ent.Section, error) {
		withDocument := slices.DeleteFunc(slices.Clone(d.Siblings.Items), func(t *release.Tool) bool {
			return !t.InEmbeddings
		})
		return r.sections(ctx, withDocument, func(*ent.SectionQuery) {})
	})
	return sections[d.Slug], err
}

// sections returns sections of the reviews of tools in the release being read.
func (r *reader) sections(
	ctx context.Context, tools []*release.Tool, limit func(*ent.SectionQuery),
) (map[string][]*ent.Section, error) {
	return r.Sections(ctx, r.database().Section, slugsOf(tools), limit)
}

// verdictSection is the section of a review that requires no API key.
const verdictSection = "verdict"

func (activeResolver) Verdict(ctx context.Context, t *model.Tool) (*string, error) {
	r := readerFrom(ctx)
	verdicts, err := model.Once(t.Siblings, "verdict", func() (map[string][]*ent.Section, error) {
		return r.sections(ctx, t.Siblings.Items, func(q *ent.SectionQuery) {
			q.Where(section.Section(verdictSection)).Select(section.FieldToolSlug, section.FieldText)
		})
	})
	if err != nil || len(verdicts[t.Slug]) == 0 {
		return nil, err
	}
	return &verdicts[t.Slug][0].Text, nil
}

func (activeResolver) ReviewSections(ctx context.Context, t *model.Tool) ([]string, error) {
	r := readerFrom(ctx)
	sections, err := model.Once(t.Siblings, "reviewSections", func() (map[string][]*ent.Section, error) {
		return r.sections(ctx, t.Siblings.Items, func(q *ent.SectionQuery) {
			q.Select(section.FieldToolSlug, section.FieldSection) // without the text
		})
	})
	return model.Map(sections[t.Slug], func(row *ent.Section) string { return row.Section }), err
}
