package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// KeyUsage is the number of requests that a key sent to an endpoint of the API on
// a day. It has no edge to its account: servers write many rows in one statement,
// which must not fail if an account is deleted.
type KeyUsage struct{ ent.Schema }

func (KeyUsage) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("day").Immutable().Comment("In UTC, YYYY-MM-DD."),
		field.String("key").Immutable().Comment("The public part of the key; empty for signed-in browsers, and \"token\" for tokens of saved queries."),
		field.String("endpoint").Immutable().Comment("The path template, such as /api/v1/tools/{slug}."),
		field.Int("requests"),
	}
}

func (KeyUsage) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id", "day", "key", "endpoint").Unique(), index.Fields("day")}
}
