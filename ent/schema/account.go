package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Account is a person or program that signed up.
type Account struct{ ent.Schema }

func (Account) Fields() []ent.Field {
	return []ent.Field{
		field.String("email").NotEmpty().Unique().
			Comment("In lower case; there is one account per address."),
		field.Enum("plan").Values("developer", "pro"),
		// Renaming the column would break the previous version during an upgrade.
		field.Bool("manual_plan").Default(false).StorageKey("plan_by_hand").
			Comment("An operator set the plan manually, so billing does not change it."),
		field.String("handle").Optional().Nillable().Unique().
			Comment("The first part of the URLs of the account's saved queries, chosen once; null until then."),
		field.Enum("language").Values("en", "fr").Default("en").Comment("Language of emails."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.String("carried_day").Optional().Immutable().
			Comment("The UTC day, YYYY-MM-DD, on which carried_requests reduces the quota."),
		field.Int("carried_requests").Default(0).Immutable().
			Comment("Requests made earlier that day by a deleted account with the same email address."),
	}
}

func (Account) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("keys", APIKey.Type),
		edge.To("usage", Usage.Type),
		edge.To("sessions", Session.Type),
		edge.To("confirmations", Confirmation.Type),
		edge.To("customer", Customer.Type).Unique(),
		edge.To("endpoints", Endpoint.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("saved_queries", SavedQuery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("query_versions", QueryVersion.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}
