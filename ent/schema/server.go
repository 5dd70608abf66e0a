package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Secret is a random value that all servers of one database share. The
// migration that introduces a secret also creates its value.
type Secret struct{ ent.Schema }

func (Secret) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("What the secret is used for, such as etag."),
		field.Bytes("value").Sensitive().Immutable(),
	}
}

// Minute counts the requests and database checks of one minute. Minutes without a running
// server have no row.
type Minute struct{ ent.Schema }

func (Minute) Fields() []ent.Field {
	numbered := false // the clock sets the number
	return []ent.Field{
		field.Int("id").Immutable().Annotations(entsql.Annotation{Incremental: &numbered}).
			Comment("Minutes since 1970."),
		field.Int("checks").Comment("Database checks by all servers."),
		field.Int("failed").Comment("Failed database checks."),
		field.Int("requests").Default(0).Comment("Requests for data to all servers."),
		field.Int("errors").Default(0).Comment("Requests for data that failed."),
	}
}
