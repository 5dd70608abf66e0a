package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// JournalEntry tells one change that a release made: what it was, what it is.
type JournalEntry struct{ ent.Schema }

// Fields of a journal entry.
func (JournalEntry) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").Positive().Immutable().
			Comment("Given by the import, never used twice: see internal/catalog/journal."),
		field.Int("release_number"),
		field.String("kind").NotEmpty().Comment("As in internal/catalog/journal, for example tool.updated."),
		field.String("slug").Comment("Of the record that changed."),
		field.String("event").Optional().Nillable().
			Comment("What readers are told it is, as in internal/catalog/journal; null for what they are not told."),
		field.String("category").Default("").Comment("Of the tool it is about."),
		field.String("other_category").Default("").Comment("Of the other tool of a comparison, or where a tool was before."),
		field.Text("before").Optional().Nillable().Comment("JSON; null for what is new."),
		field.Text("after").Optional().Nillable().Comment("JSON; null for what is gone."),
	}
}

// Edges of a journal entry.
func (JournalEntry) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("release", Release.Type).Ref("journal").Field("release_number").Unique().Required(),
	}
}

// Indexes of a journal entry.
func (JournalEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("event", "id").StorageKey("journal_by_event"),
		index.Fields("slug").StorageKey("journal_by_slug"),
	}
}
