package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// CountBatch is what one server counted in a moment: how many requests of
// which addresses. A day's counts are the sum of its batches.
type CountBatch struct{ ent.Schema }

// Fields of a batch.
func (CountBatch) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().
			Comment("Made by the server, so that a batch whose fate is unknown can be written again and counts once."),
		field.String("day").Immutable().Comment("In UTC, YYYY-MM-DD."),
		field.Bytes("counts").Immutable(),
	}
}

// Indexes of a batch.
func (CountBatch) Indexes() []ent.Index {
	return []ent.Index{index.Fields("day")}
}
