package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// SavedQuery is a GraphQL query that an account saved under a name. It is served
// at its own URL.
type SavedQuery struct{ ent.Schema }

func (SavedQuery) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("name").NotEmpty().Immutable(),
		field.String("hash").NotEmpty().Comment("Hash of the current text; see QueryVersion."),
		field.String("title").Default(""),
		field.String("description").Default(""),
		field.String("chart").Default("").Comment("How the page draws the result, as JSON; empty if the page decides."),
		field.Bool("public"),
		field.String("token_hash").Optional().Nillable().Unique().Sensitive().
			Comment("SHA-256 of the token that gives access without a key, in hexadecimal; null if there is none."),
		field.String("broken_reason").Default("").
			Comment("Why the text is not valid in the current version of the program; empty if it is."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("updated_at").Default(time.Now),
	}
}

func (SavedQuery) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("saved_queries").Field("account_id").Unique().Required().Immutable()}
}

func (SavedQuery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id", "name").Unique()}
}

// QueryVersion is a text that an account saved. It is retained when its saved
// query is changed or deleted, because its hash is part of a permanent URL.
type QueryVersion struct{ ent.Schema }

func (QueryVersion) Fields() []ent.Field {
	return []ent.Field{
		field.String("hash").NotEmpty().Immutable().
			Comment("The first half of the text's SHA-256, in hexadecimal."),
		field.Int("account_id").Immutable(),
		field.Text("text").NotEmpty().Immutable(),
		field.Bool("public"),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

func (QueryVersion) Edges() []ent.Edge {
	return []ent.Edge{edge.To("account", Account.Type).Field("account_id").Unique().Required().Immutable().
		StorageKey(edge.Symbol("query_versions_accounts_query_versions")).Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (QueryVersion) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash", "account_id").Unique(),
		index.Fields("account_id", "created_at"),
	}
}

// DownloadToken gives access to downloads of whole lists, for programs that cannot send
// a key. Revoking it deletes it.
type DownloadToken struct{ ent.Schema }

func (DownloadToken) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("name").Immutable(),
		field.String("token_hash").NotEmpty().Unique().Immutable().Sensitive().
			Comment("SHA-256 of the token, in hexadecimal."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("last_used_at").Optional().Nillable().Comment("Written at most once a minute."),
	}
}

func (DownloadToken) Edges() []ent.Edge {
	return []ent.Edge{edge.To("account", Account.Type).Field("account_id").Unique().Required().Immutable().
		StorageKey(edge.Symbol("download_tokens_accounts_download_tokens")).Annotations(entsql.OnDelete(entsql.Cascade))}
}

func (DownloadToken) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id")}
}
