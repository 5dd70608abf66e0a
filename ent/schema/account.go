package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Account is a person or program that signed up.
type Account struct{ ent.Schema }

func (Account) Fields() []ent.Field {
	return []ent.Field{
		field.String("email").NotEmpty().Unique().
			Comment("In lower case; there is one account per address."),
		field.Enum("plan").Values("developer", "pro"),
		field.Bool("manual_plan").Default(false).
			Comment("An operator set the plan manually, so billing does not change it."),
		field.String("handle").Optional().Nillable().Unique().
			Comment("The first part of the URLs of the account's saved queries, chosen once; null until then."),
		field.Enum("language").Values("en", "fr").Default("en").Comment("Language of emails."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Int64("subject").Optional().Nillable().Unique().Immutable().
			Comment("What its requests are counted under, a keyed hash of the address that signed up; null if that was before version 0.3, see auth.Subject."),
		field.String("carried_day").Optional().Immutable().
			Comment("Unused, but servers of version 0.2 read it."),
		field.Int("carried_requests").Default(0).Immutable().
			Comment("Unused, but servers of version 0.2 read it."),
	}
}

func (Account) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("keys", APIKey.Type),
		edge.To("customer", Customer.Type).Unique(),
		edge.To("saved_queries", SavedQuery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// FormerHandle is the handle of a deleted account. It is never given out again, because
// its URLs may still be in use.
type FormerHandle struct{ ent.Schema }

func (FormerHandle) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().
			Comment("Keyed hash of the handle: the handle itself is deleted with the account."),
	}
}

// APIKey is an API key. Only a hash of its secret part is stored, so the
// database does not give access to anything.
type APIKey struct{ ent.Schema }

func (APIKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().
			Comment("The public part of the key."),
		field.Int("account_id").Immutable(),
		field.String("name"),
		field.Bytes("secret_hash").Immutable().Sensitive().
			Comment("SHA-256 of the secret part."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("last_used_at").Optional().Nillable().
			Comment("Written at most once a minute."),
		field.Time("revoked_at").Optional().Nillable(),
	}
}

func (APIKey) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("keys").Field("account_id").Unique().Required().Immutable()}
}

func (APIKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id")}
}

// Session is a signed-in browser. Only hashes are stored, so the
// database does not give access to a session.
type Session struct{ ent.Schema }

func (Session) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Sensitive().
			Comment("SHA-256 of the cookie's value, in hexadecimal."),
		field.Int("account_id").Immutable(),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("expires_at").Immutable(),
		field.String("user_agent").Default("").Immutable().Comment("The browser's User-Agent at sign-in, shortened."),
		field.String("key_id").Optional().Nillable().Unique().
			Comment("The public part of the key that this browser uses to call the API; null until it has one."),
		field.Bytes("key_hash").Optional().Sensitive().
			Comment("SHA-256 of that key's secret part."),
	}
}

func (Session) Edges() []ent.Edge {
	return []ent.Edge{edge.To("account", Account.Type).Field("account_id").Unique().Required().Immutable().
		StorageKey(edge.Symbol("sessions_accounts_sessions"))}
}

func (Session) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("expires_at")}
}

// Confirmation is an email that proves the ownership of an address, by its link
// or by its code, which must be entered in the browser that requested it.
type Confirmation struct{ ent.Schema }

func (Confirmation) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("purpose").Values("sign_in", "change_email").Immutable(),
		field.String("email").NotEmpty().Immutable(),
		field.String("mailbox").NotEmpty().Immutable().
			Comment("The address without its +tag: the mailbox that receives the email."),
		field.String("sender").Immutable().
			Comment("The network that requested it."),
		field.String("wider_sender").Default("").Immutable().
			Comment("The larger network around it: many IPv6 users have several networks."),
		field.Int("account_id").Optional().Nillable().Immutable().
			Comment("The account whose address changes."),
		field.String("link_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("browser_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("code_hash").NotEmpty().Immutable().Sensitive().
			Comment("Keyed with a secret of the browser: a hash of six digits alone is easy to guess."),
		field.Int("tries").Default(0).Comment("How many incorrect codes were entered."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("expires_at").Immutable(),
		field.Time("used_at").Optional().Nillable(),
	}
}

func (Confirmation) Edges() []ent.Edge {
	return []ent.Edge{edge.To("account", Account.Type).Field("account_id").Unique().Immutable().
		StorageKey(edge.Symbol("confirmations_accounts_confirmations"))}
}

func (Confirmation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("mailbox", "created_at"),
		index.Fields("sender", "created_at"),
		index.Fields("wider_sender", "created_at"),
		index.Fields("created_at"),
		index.Fields("account_id"),
	}
}
