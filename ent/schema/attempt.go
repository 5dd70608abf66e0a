package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Attempt is one time that an event was sent to an endpoint.
type Attempt struct{ ent.Schema }

// Fields of an attempt.
func (Attempt) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("The journal's number; 0 for a test."),
		field.String("type").Immutable(),
		field.Int("number").Immutable().Comment("1 for the first."),
		field.Time("at").Default(time.Now).Immutable(),
		field.Int("status").Immutable().Comment("The answer's; 0 for none."),
		field.Int("took_ms").Immutable(),
		field.String("answer").Immutable().Comment("Its first bytes, or in our words why there is none."),
		field.Bool("delivered").Immutable(),
	}
}

// Edges of an attempt.
func (Attempt) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("endpoint", Endpoint.Type).Ref("attempts").Field("endpoint_id").Unique().Required().Immutable(),
	}
}

// Indexes of an attempt.
func (Attempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("endpoint_id", "at"), index.Fields("at"),
		// Few fail, and those are looked for among all others.
		index.Fields("endpoint_id", "at").Annotations(entsql.IndexWhere("NOT delivered")).StorageKey("attempt_failed"),
	}
}
