package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Release is one published state of the whole catalog, with its statistics.
// Readers see the newest.
type Release struct{ ent.Schema }

func (Release) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").StorageKey("number").Positive().Immutable().
			Comment("1 for the first release, increasing without gaps."),
		field.String("feed_date").Immutable().Comment("The feed's own updated_at."),
		field.Time("imported_at").Default(time.Now).Immutable(),
		field.Int("tools_total").Immutable(),
		field.Int("tools_tested").Immutable(),
		field.Float("tools_avg_score").Optional().Nillable().Immutable(),
		field.Int("tools_retired").Immutable(),
		field.Int("comparisons_total").Immutable().Comment("Published comparisons."),
		field.Int("history_from").Default(1).
			Comment("The oldest release that can still be read, as of this one."),
	}
}

// JournalEntry is one change that a release made, with the states before and
// after.
type JournalEntry struct{ ent.Schema }

func (JournalEntry) Fields() []ent.Field {
	return []ent.Field{
		field.Int("id").Positive().Immutable().
			Comment("Set by the import and never reused; see internal/catalog/journal."),
		field.Int("release_number").Immutable(),
		field.String("kind").NotEmpty().Immutable().Comment("One of the kinds in internal/catalog/journal, for example tool.updated."),
		field.String("slug").Immutable().Comment("Slug of the record that changed."),
		field.String("event").Optional().Nillable().Immutable().
			Comment("Type of the event, as in internal/catalog/journal; null if the change is not visible to readers."),
		field.String("category").Default("").Immutable().Comment("Category of the tool that changed."),
		field.String("other_category").Default("").Immutable().Comment("Category of the second tool of a comparison, or the previous category of a tool."),
		field.Text("before").Optional().Nillable().Immutable().Comment("JSON; null if the record is new."),
		field.Text("after").Optional().Nillable().Immutable().Comment("JSON; null if the record was removed."),
	}
}

func (JournalEntry) Edges() []ent.Edge {
	return []ent.Edge{edge.To("release", Release.Type).Field("release_number").Unique().Required().Immutable().
		StorageKey(edge.Symbol("journal_entries_releases_journal"))}
}

func (JournalEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("event", "id").StorageKey("journal_by_event"),
		index.Fields("slug").StorageKey("journal_by_slug"),
	}
}
