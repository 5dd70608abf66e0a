package release

import (
	"context"
	"slices"

	"palmares/ent"
	"palmares/ent/section"
	"palmares/internal/core/store"
)

// Sections returns sections of the reviews of tools, which are not in memory, by tool and
// in order. Limit may select some of them or of their columns.
func (r *Release) Sections(
	ctx context.Context, db *ent.SectionClient, slugs []string, limit func(*ent.SectionQuery),
) (map[string][]*ent.Section, error) {
	sections := map[string][]*ent.Section{}
	for some := range slices.Chunk(slugs, MaxParameters) {
		query := db.Query().
			Where(store.Sections.At(r.Number()), section.ToolSlugIn(some...)).
			Order(section.ByToolSlug(), section.ByPosition())
		limit(query)
		rows, err := query.All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			sections[row.ToolSlug] = append(sections[row.ToolSlug], row)
		}
	}
	return sections, nil
}
