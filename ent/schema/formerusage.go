package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// FormerUsage is the number of requests that an account had made on a day when it was
// deleted or first changed its email address. It is retained until midnight UTC, so
// that signing up again with the same address does not reset the quota.
type FormerUsage struct{ ent.Schema }

func (FormerUsage) Fields() []ent.Field {
	return []ent.Field{
		field.String("email_hash").NotEmpty().Immutable().
			Comment("Keyed hash of the email address: the address itself is deleted with the account."),
		field.String("day").Immutable().Comment("In UTC, YYYY-MM-DD."),
		field.Int("account_id").Immutable().
			Comment("The deleted account, for counts that servers write after its deletion."),
		field.Int("requests"),
	}
}

func (FormerUsage) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("day", "email_hash"),
		index.Fields("account_id", "day", "email_hash").Unique(),
	}
}
