package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Minute is one in which a server was up. One that has no row had none.
type Minute struct{ ent.Schema }

// Fields of a minute.
func (Minute) Fields() []ent.Field {
	numbered := false // by nobody but the clock
	return []ent.Field{
		field.Int("id").Immutable().Annotations(entsql.Annotation{Incremental: &numbered}).
			Comment("Minutes since 1970."),
		field.Int("requests").Comment("Answered by all servers together."),
		field.Int("failed").Comment("Those of them that failed on our side."),
	}
}
