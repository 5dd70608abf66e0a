package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Tool is active or retired: retirement is a state of the tool. A retired
// tool has what the graveyard shows and nothing more; the columns of an
// active tool are then null.
type Tool struct{ ent.Schema }

// Fields of a tool.
func (Tool) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("name").NotEmpty(),
		field.String("name_key").
			Comment("The name in lower case without accents, cut to what an index takes: what name orders compare."),
		field.String("category_slug"),
		field.Float("score").Optional().Nillable(),
		field.Bool("untested").
			Comment("True without a score: sorts those tools last in both score orders."),

		field.String("domain").Optional(),
		field.Enum("icp").Values("vibe-coder", "agentic-engineer", "mixte").Optional(),
		field.Enum("pricing").Values(pricingModels...).Optional(),
		field.String("price").Optional(),
		field.Float("price_amount").Optional().Comment("The number in price, in euros."),
		field.String("price_period").Optional().Comment("What follows the slash in price."),
		field.Float("verifiability").Optional().Nillable(),
		field.Float("obsolescence").Optional().Nillable().
			Comment("0 (current) to 10 (obsolete), as the editors judge it."),
		field.String("tagline").Optional(),
		field.String("canonical_url").Optional(),
		field.String("avis_url").Optional().Nillable(),
		field.String("alternatives_url").Optional(),
		field.String("updated_at").Optional(),
		field.Text("search_text").Optional().
			Comment("Name and tagline, folded as name_key is: what a search looks through."),
		field.Int("tier").Optional().Comment("1 is the highest, 3 the lowest."),
		field.Bool("mainstream").Default(false),
		field.String("sections_hash").Optional().
			Comment("The embeddings document's hash, over the review's sections."),
		field.String("history_hash").Optional().
			Comment("Hash of the stored price changes: tells an import that it has nothing to merge."),
		field.Bool("in_embeddings").Default(false).
			Comment("Member of the embeddings set, worked out by each import."),

		field.Enum("retired_reason").Values("mort", "acquis", "deprecie", "pivot", "absorbe").Optional(),
		field.String("retired_at").Optional(),
		field.String("retired_note").Optional(),

		fingerprint(),
	}
}

// Edges of a tool.
func (Tool) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("category", Category.Type).Ref("tools").
			Field("category_slug").Unique().Required(),
		edge.To("sections", Section.Type).
			Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("price_changes", PriceChange.Type).
			Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("comparisons_as_a", Comparison.Type),
		edge.To("comparisons_as_b", Comparison.Type),
		edge.To("comparisons_won", Comparison.Type),
	}
}

// Indexes of a tool: one for each order the interface promises, alone and
// within a category, each ending in the slug that breaks ties.
func (Tool) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("untested", "score", "id").StorageKey("tools_by_score_desc").
			Annotations(activeOnly(), entsql.DescColumns("score")),
		index.Fields("untested", "score", "id").StorageKey("tools_by_score_asc").
			Annotations(activeOnly()),
		index.Fields("name_key", "id").StorageKey("tools_by_name_asc").
			Annotations(activeOnly()),
		index.Fields("name_key", "id").StorageKey("tools_by_name_desc").
			Annotations(activeOnly(), entsql.DescColumns("name_key")),
		index.Fields("category_slug", "untested", "score", "id").StorageKey("tools_by_category_score").
			Annotations(activeOnly(), entsql.DescColumns("score")),
		index.Fields("category_slug", "untested", "score", "id").StorageKey("tools_by_category_score_asc").
			Annotations(activeOnly()),
		index.Fields("category_slug", "name_key", "id").StorageKey("tools_by_category_name").
			Annotations(activeOnly()),
		index.Fields("category_slug", "name_key", "id").StorageKey("tools_by_category_name_desc").
			Annotations(activeOnly(), entsql.DescColumns("name_key")),
		index.Fields("category_slug", "updated_at", "id").StorageKey("tools_by_category_update_desc").
			Annotations(activeOnly(), entsql.DescColumns("updated_at")),
		index.Fields("category_slug", "updated_at", "id").StorageKey("tools_by_category_update_asc").
			Annotations(activeOnly()),
		index.Fields("category_slug", "price_amount", "id").StorageKey("tools_by_category_price_desc").
			Annotations(activeOnly(), entsql.DescColumns("price_amount")),
		index.Fields("category_slug", "price_amount", "id").StorageKey("tools_by_category_price_asc").
			Annotations(activeOnly()),
		index.Fields("updated_at", "id").StorageKey("tools_by_update_desc").
			Annotations(activeOnly(), entsql.DescColumns("updated_at")),
		index.Fields("updated_at", "id").StorageKey("tools_by_update_asc").
			Annotations(activeOnly()),
		// A search looks through this instead of the whole table. PostgreSQL
		// does not need it, and its trees refuse long texts: there it is a hash.
		index.Fields("search_text").StorageKey("tools_by_search_text").
			Annotations(activeOnly(), entsql.IndexTypes(map[string]string{dialect.Postgres: "HASH"})),
		index.Fields("price_amount", "id").StorageKey("tools_by_price_desc").
			Annotations(activeOnly(), entsql.DescColumns("price_amount")),
		index.Fields("price_amount", "id").StorageKey("tools_by_price_asc").
			Annotations(activeOnly()),
		index.Fields("obsolescence").StorageKey("tools_by_obsolescence").
			Annotations(activeOnly()),
		index.Fields("retired_at", "id").StorageKey("tools_by_retirement").
			Annotations(retiredOnly(), entsql.DescColumns("retired_at")),
		index.Fields("retired_reason", "retired_at", "id").StorageKey("tools_by_retirement_reason").
			Annotations(retiredOnly(), entsql.DescColumns("retired_at")),
		index.Fields("category_slug", "retired_at", "id").StorageKey("tools_by_retirement_category").
			Annotations(retiredOnly(), entsql.DescColumns("retired_at")),
	}
}

// Annotations of a tool: the databases themselves refuse a half-retired one.
func (Tool) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entsql.Checks(map[string]string{
			"tools_active_or_retired": "((retired_at IS NULL) = (domain IS NOT NULL))",
			"tools_untested_is_told":  "(untested = (score IS NULL))",
		}),
	}
}
