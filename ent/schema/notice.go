package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Notice is an email that is still to be sent. It is stored in the transaction that
// causes it, and deleted once the mail server has accepted it.
type Notice struct{ ent.Schema }

func (Notice) Fields() []ent.Field {
	return []ent.Field{
		field.String("message_id").NotEmpty().Immutable().Comment("The same for all attempts, so that an email that arrives twice can be recognized."),
		field.String("about").Default("").Immutable().Comment("What it is about, such as endpoint 12: if that changes before it is sent, it is withdrawn."),
		field.String("recipient").NotEmpty().Immutable(),
		field.String("subject").Immutable(),
		field.Text("text").Immutable(),
		field.Text("html").Immutable(),
		field.String("link").Default("").Immutable().Comment("What is logged without a mail server."),
		field.Int("attempts").Default(0),
		field.Time("next_at").Default(time.Now).Comment("Time of the next attempt; while a server makes one, when others may."),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

func (Notice) Indexes() []ent.Index { return []ent.Index{index.Fields("next_at")} }
