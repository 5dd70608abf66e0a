package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Release is one published state of the whole catalog, with its statistics.
// Readers see the newest.
type Release struct{ ent.Schema }

func (Release) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").StorageKey("number").Positive().Immutable().
			Comment("1 for the first release, increasing without gaps."),
		field.String("feed_date").Comment("The feed's own updated_at."),
		field.Time("imported_at").Default(time.Now).Immutable(),
		field.Int("tools_total"),
		field.Int("tools_tested"),
		field.Float("tools_avg_score").Optional().Nillable(),
		field.Int("tools_retired"),
		field.Int("comparisons_total").Comment("Published comparisons."),
		field.Int("history_from").Default(1).
			Comment("The oldest release that can still be read, as of this one."),
	}
}

func (Release) Edges() []ent.Edge {
	return []ent.Edge{edge.To("journal", JournalEntry.Type)}
}
