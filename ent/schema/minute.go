package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Minute is a minute in which a server was up; other minutes have no row.
type Minute struct{ ent.Schema }

func (Minute) Fields() []ent.Field {
	numbered := false // the clock sets the number
	return []ent.Field{
		field.Int("id").Immutable().Annotations(entsql.Annotation{Incremental: &numbered}).
			Comment("Minutes since 1970."),
		field.Int("requests").Comment("Requests that all servers handled."),
		field.Int("failed").Comment("Requests that failed with a server error."),
	}
}
