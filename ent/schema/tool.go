package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Tool is an active or retired tool. The columns that only active tools have
// are null for a retired one.
type Tool struct{ ent.Schema }

func (Tool) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("name").NotEmpty().Immutable(),
		field.String("name_key").Immutable().
			Comment("The name in lower case without accents, shortened for the index; lists are sorted by it."),
		field.String("category_slug").Immutable(),
		field.Float("score").Optional().Nillable().Immutable(),

		field.String("domain").Optional().Immutable(),
		field.Enum("icp").Values("vibe-coder", "agentic-engineer", "mixte").Optional().Immutable(),
		field.Enum("pricing").Values(pricingModels...).Optional().Immutable(),
		field.String("price").Optional().Immutable(),
		field.Float("price_amount").Optional().Immutable().Comment("The number in price, in euros."),
		field.String("price_period").Optional().Immutable().Comment("The part of price after the slash."),
		field.Float("verifiability").Optional().Nillable().Immutable(),
		field.Float("obsolescence").Optional().Nillable().Immutable().
			Comment("From 0 (current) to 10 (obsolete), as the editors judge it."),
		field.String("tagline").Optional().Immutable(),
		field.String("canonical_url").Optional().Immutable(),
		field.String("avis_url").Optional().Nillable().Immutable(),
		field.String("alternatives_url").Optional().Immutable(),
		field.String("updated_at").Optional().Immutable(),
		field.String("ends_at").Optional().Nillable().Immutable(),
		optionalJSON("translations", ToolTranslations{}),
		optionalJSON("sources", []Source{}),
		field.Int("tier").Optional().Immutable().Comment("1 is the highest, 3 the lowest."),
		field.Bool("mainstream").Default(false).Immutable(),
		field.String("sections_hash").Optional().Immutable().
			Comment("Hash of the embeddings document, over the review's sections."),
		field.String("history_hash").Optional().Immutable().
			Comment("Hash of the stored price changes, which lets an import skip tools with nothing to merge."),
		field.Bool("in_embeddings").Default(false).
			Comment("Member of the embeddings set, as each import derives it."),

		field.Enum("retired_reason").Values("mort", "acquis", "deprecie", "pivot", "absorbe").Optional().Immutable(),
		field.String("retired_at").Optional().Immutable(),
		field.String("retired_note").Optional().Immutable(),

		fingerprint(),
		sinceRelease(),
	}
}

func (Tool) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("category", Category.Type).Field("category_slug").Unique().Required().Immutable().
			StorageKey(edge.Symbol("tools_categories_tools")),
		edge.To("sections", Section.Type).Immutable().
			Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("price_changes", PriceChange.Type).Immutable().
			Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Annotations make the database reject a tool that is neither active nor retired.
func (Tool) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entsql.Checks(map[string]string{
			"tools_active_or_retired": "((retired_at IS NULL) = (domain IS NOT NULL))",
		}),
	}
}

// Section is one part of a tool's review. Embeddings documents consist of
// sections.
type Section struct{ ent.Schema }

func (Section) Fields() []ent.Field {
	return []ent.Field{
		field.String("tool_slug").Immutable(),
		field.Int("position").NonNegative().Immutable().Comment("Order within the review, from 0."),
		field.String("section").NotEmpty().Immutable().Comment("The section's identifier within the review."),
		field.Text("text").Immutable(),
		sinceRelease(),
	}
}

func (Section) Edges() []ent.Edge {
	return []ent.Edge{edge.From("tool", Tool.Type).Ref("sections").Field("tool_slug").Unique().Required().Immutable()}
}

func (Section) Indexes() []ent.Index {
	return []ent.Index{index.Fields("tool_slug", "position").Unique().StorageKey("sections_by_tool")}
}

// PriceChange is one entry of a tool's price history. Entries of one tool
// are inserted oldest first, so the id orders those of the same day.
type PriceChange struct{ ent.Schema }

func (PriceChange) Fields() []ent.Field {
	return []ent.Field{
		field.String("tool_slug").Immutable(),
		field.String("changed_at").Immutable(),
		field.Enum("pricing").Values(pricingModels...).Immutable(),
		field.String("price").Immutable(),
		field.Enum("previous_pricing").Values(pricingModels...).Immutable(),
		field.String("previous_price").Immutable(),
		field.String("digest").Immutable().Comment("Hash of the change, unique within its tool."),
		sinceRelease(),
	}
}

func (PriceChange) Edges() []ent.Edge {
	return []ent.Edge{edge.From("tool", Tool.Type).Ref("price_changes").Field("tool_slug").Unique().Required().Immutable()}
}

func (PriceChange) Indexes() []ent.Index {
	return []ent.Index{index.Fields("tool_slug", "digest").Unique().StorageKey("price_changes_once")}
}

// Category groups tools. Each import recalculates its count and average.
type Category struct{ ent.Schema }

func (Category) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("label").NotEmpty().Immutable(),
		optionalJSON("translations", CategoryTranslations{}),
		field.Int("tool_count").Default(0).Immutable().
			Comment("Active tools in the category."),
		field.Float("avg_score").Optional().Nillable().Immutable().
			Comment("Mean score of its active tools, two decimals; null when none has a score."),
		fingerprint(),
		sinceRelease(),
	}
}

// Comparison compares two tools, active or retired.
type Comparison struct{ ent.Schema }

func (Comparison) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("title").NotEmpty().Immutable(),
		field.String("tool_a_slug").Immutable(),
		field.String("tool_b_slug").Immutable(),
		field.String("winner_slug").Immutable(),
		field.String("winner_note").Immutable(),
		optionalJSON("translations", ComparisonTranslations{}),
		field.Bool("published").Immutable(),
		field.String("updated_at").Immutable(),
		field.String("canonical_url").Immutable(),
		fingerprint(),
		sinceRelease(),
	}
}

func (Comparison) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("tool_a", Tool.Type).Field("tool_a_slug").Unique().Required().Immutable().
			StorageKey(edge.Symbol("comparisons_tools_comparisons_as_a")),
		edge.To("tool_b", Tool.Type).Field("tool_b_slug").Unique().Required().Immutable().
			StorageKey(edge.Symbol("comparisons_tools_comparisons_as_b")),
		edge.To("winner", Tool.Type).Field("winner_slug").Unique().Required().Immutable().
			StorageKey(edge.Symbol("comparisons_tools_comparisons_won")),
	}
}

func (Comparison) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("tool_a_slug").StorageKey("comparisons_by_tool_a"),
		index.Fields("tool_b_slug").StorageKey("comparisons_by_tool_b"),
		index.Fields("winner_slug").StorageKey("comparisons_by_winner"),
	}
}
