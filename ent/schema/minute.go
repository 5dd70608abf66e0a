package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Minute counts the database checks of one minute. Minutes without a running
// server have no row.
type Minute struct{ ent.Schema }

func (Minute) Fields() []ent.Field {
	numbered := false // the clock sets the number
	return []ent.Field{
		field.Int("id").Immutable().Annotations(entsql.Annotation{Incremental: &numbered}).
			Comment("Minutes since 1970."),
		field.Int("requests").Comment("Database checks by all servers. The column name predates them."),
		field.Int("failed").Comment("Failed database checks."),
	}
}
