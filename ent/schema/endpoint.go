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

// Endpoint is a URL that an account wants events sent to.
type Endpoint struct{ ent.Schema }

// asText stores JSON as text: the driver cannot send JSON to a jsonb column.
var asText = map[string]string{dialect.Postgres: "text"}

func (Endpoint) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("url").NotEmpty(),
		field.JSON("types", []string{}).SchemaType(asText).Comment("Event types to send; all if empty."),
		field.JSON("categories", []string{}).SchemaType(asText).Comment("Categories to send events about; all if empty."),
		field.Bool("batches").Default(false).Comment("Send several events in one request."),
		field.String("secret").NotEmpty().Sensitive().
			Comment("Key that signs events. Signing requires the key itself, so it cannot be stored as a hash."),
		field.String("former_secret").Default("").Sensitive(),
		field.Time("former_until").Optional().Nillable().Comment("Until then, events are signed with both secrets."),
		field.Enum("state").Values("active", "paused", "disabled").Default("active"),
		field.String("disabled_reason").StorageKey("why").Default("").Comment("Why the endpoint was disabled."),
		field.Int("position").Comment("Number of the newest event that was attempted."),
		field.Int("failures").Default(0).Comment("Failed attempts since the last success."),
		field.Time("failing_since").Optional().Nillable(),
		field.Time("delivered_at").Optional().Nillable().Comment("Time of the last successful attempt."),
		field.Time("not_before").Optional().Nillable().Comment("Earliest time of the next attempt, as requested by the receiver."),
		field.Bool("notify_owner").StorageKey("untold").Default(false).Comment("The email about the disabled endpoint is pending."),
		field.String("leased_by").Default("").Comment("Server that is delivering to the endpoint; empty if none."),
		field.Time("leased_until").Optional().Comment("When other servers may take over."),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

func (Endpoint) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("account", Account.Type).Ref("endpoints").Field("account_id").Unique().Required().Immutable(),
		edge.To("deliveries", Delivery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("attempts", Attempt.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Endpoint) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("state", "position")}
}
