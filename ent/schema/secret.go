package schema

import (
	"entgo.io/ent"
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
