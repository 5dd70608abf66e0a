package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

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
		// Renaming the column would break the previous version during an upgrade.
		field.String("response").StorageKey("answer").Immutable().Comment("The first bytes of the response, or why there is none."),
		field.Bool("delivered").Immutable(),
		field.String("test_body").Default("").Immutable().Comment("The body of a test event, which is not in the journal."),
	}
}

func (Attempt) Edges() []ent.Edge {
	return []ent.Edge{edge.From("endpoint", Endpoint.Type).Ref("attempts").Field("endpoint_id").Unique().Required().Immutable()}
}

func (Attempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("endpoint_id", "at"), index.Fields("at"),
		// Failed attempts are few and are queried separately.
		index.Fields("endpoint_id", "at").Annotations(entsql.IndexWhere("NOT delivered")).StorageKey("attempt_failed"),
	}
}
