package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Endpoint is an address that an account wants events sent to.
type Endpoint struct{ ent.Schema }

// asText keeps JSON as text: PostgreSQL's jsonb cannot be sent as it comes.
var asText = map[string]string{dialect.Postgres: "text"}

// Fields of an endpoint.
func (Endpoint) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("url").NotEmpty(),
		field.JSON("types", []string{}).SchemaType(asText).Comment("Of events that are wanted; all if empty."),
		field.JSON("categories", []string{}).SchemaType(asText).Comment("That are wanted; all if empty."),
		field.String("secret").NotEmpty().Sensitive().
			Comment("What events are signed with. It has to be known to sign, so it is kept as it is."),
		field.String("former_secret").Default("").Sensitive(),
		field.Time("former_until").Optional().Nillable().Comment("Until then both sign."),
		field.Enum("state").Values("active", "paused", "disabled").Default("active"),
		field.String("why").Default("").Comment("Why it was disabled."),
		field.Int("position").Comment("The newest event that was begun with."),
		field.Int("failures").Default(0).Comment("In a row."),
		field.Time("failing_since").Optional().Nillable(),
		field.Time("not_before").Optional().Nillable().Comment("Its receiver asked to be left alone until then."),
		field.Bool("untold").Default(false).Comment("Its owner is still to be told that it was disabled."),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

// Edges of an endpoint.
func (Endpoint) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("account", Account.Type).Ref("endpoints").Field("account_id").Unique().Required().Immutable(),
		edge.To("deliveries", Delivery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("attempts", Attempt.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of an endpoint.
func (Endpoint) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("state", "position")}
}
