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
		field.JSON("categories", []string{}).SchemaType(asText).Comment("Slugs of categories to send events about; all if there are no tools either."),
		field.JSON("tools", []string{}).SchemaType(asText).Annotations(entsql.Default("[]")).Comment("Slugs of tools to send events about."),
		field.Bool("batches").Default(false).Comment("Send several events in one request."),
		field.String("secret").NotEmpty().Sensitive().
			Comment("Key that signs events. Signing requires the key itself, so it cannot be stored as a hash."),
		field.String("former_secret").Default("").Sensitive(),
		field.Time("former_until").Optional().Nillable().Comment("Until then, events are signed with both secrets."),
		field.Enum("state").Values("active", "paused", "disabled").Default("active"),
		field.String("disabled_reason").Default("").Comment("Why the endpoint was disabled."),
		field.Int("position").Comment("Number of the newest event that was attempted."),
		field.Int("failures").Default(0).Comment("Failed attempts since the last success."),
		field.Time("failing_since").Optional().Nillable(),
		field.Time("delivered_at").Optional().Nillable().Comment("Time of the last successful attempt."),
		field.Time("not_before").Optional().Nillable().Comment("Earliest time of the next attempt, as requested by the receiver."),
		field.String("leased_by").Default("").Comment("Server that is delivering to the endpoint; empty if none."),
		field.Time("leased_until").Optional().Comment("When other servers may take over."),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

func (Endpoint) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("account", Account.Type).Field("account_id").Unique().Required().Immutable().
			StorageKey(edge.Symbol("endpoints_accounts_endpoints")).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("deliveries", Delivery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

func (Endpoint) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("state", "position")}
}

// Delivery is a pending delivery of an event to an endpoint, usually a retry.
// Events that are delivered on the first attempt have no row.
type Delivery struct{ ent.Schema }

func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("Number of the event in the journal."),
		field.Int("attempts").Default(0),
		field.Time("next_at"),
		field.Int("batch").Default(0).Comment("The number of the first event that was sent in the same request; 0 if the event has not been sent yet."),
		field.Bool("held").Default(false).Comment("Waits for earlier events; next_at is then when the last of them is retried."),
	}
}

func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{edge.From("endpoint", Endpoint.Type).Ref("deliveries").Field("endpoint_id").Unique().Required().Immutable()}
}

func (Delivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint_id", "event").Unique(), index.Fields("next_at")}
}

// Attempt is one attempt to deliver an event or a batch of events to an endpoint.
type Attempt struct{ ent.Schema }

func (Attempt) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("The event's number in the journal; 0 for a test event."),
		field.JSON("events", []int{}).SchemaType(asText).Optional().Immutable().Comment("The numbers of all events in a batch; event is the first."),
		field.String("type").Immutable(),
		field.Int("number").Immutable().Comment("1 for the first attempt."),
		field.Time("at").Default(time.Now).Immutable(),
		field.Int("status").Immutable().Comment("HTTP status of the response; 0 if there was none."),
		field.Int("took_ms").Immutable(),
		field.String("response").Immutable().Comment("The first bytes of the response, or why there is none."),
		field.Bool("delivered").Immutable(),
		field.String("test_body").Default("").Immutable().Comment("The body of a test event, which is not in the journal."),
	}
}

func (Attempt) Edges() []ent.Edge {
	return []ent.Edge{edge.To("endpoint", Endpoint.Type).Field("endpoint_id").Unique().Required().Immutable().
		StorageKey(edge.Symbol("attempts_endpoints_attempts")).Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (Attempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("endpoint_id", "at"), index.Fields("at"),
		// Failed attempts are few and are queried separately.
		index.Fields("endpoint_id", "at").Annotations(entsql.IndexWhere("NOT delivered")).StorageKey("attempt_failed"),
	}
}
