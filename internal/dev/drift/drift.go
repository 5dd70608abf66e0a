// Package drift compares the migrations with the ent schema. Start reading at
// Statements.
package drift

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"

	"palmares/ent/migrate"
	"palmares/internal/core/store"
)

// Statements returns the statements that would change a migrated database to match
// the ent schema, or "" if they agree. It does not run them.
func Statements(ctx context.Context, cfg store.Config) (string, error) {
	name, driver, source := dialect.SQLite, "sqlite", store.File(cfg.DataDir)+"?_pragma=foreign_keys(1)"
	if cfg.DatabaseURL != "" {
		name, driver, source = dialect.Postgres, "postgres", cfg.DatabaseURL
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var statements strings.Builder
	into := &schema.WriteDriver{Writer: &statements, Driver: entsql.OpenDB(name, db)}
	migration, err := schema.NewMigrate(into, schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		return "", err
	}
	tables := Tables()
	if name == dialect.Postgres {
		useByteCollation(tables)
	}
	if err := migration.Create(ctx, tables...); err != nil {
		return "", err
	}
	// Pragmas have no effect in the transaction in which migrations run.
	var lines []string
	for line := range strings.Lines(statements.String()) {
		switch line = strings.TrimSpace(line); {
		case line == "", line == "BEGIN;", line == "COMMIT;", strings.HasPrefix(line, "PRAGMA "):
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// useByteCollation gives every text column the "C" collation, so that both databases
// sort strings the same way, regardless of the server's locale.
func useByteCollation(tables []*schema.Table) {
	for _, table := range tables {
		for _, column := range table.Columns {
			if column.Type == field.TypeString || column.Type == field.TypeEnum {
				column.Collation = "C"
			}
		}
	}
}

// Tables returns the tables of the ent schema, those of their history, and those that
// have no ent entity.
func Tables() []*schema.Table {
	tables := append(slices.Clone(migrate.Tables), search(), grants())
	for table, index := range map[string]string{
		"categories": "category", "tools": "tool", "comparisons": "comparison", "sections": "section", "price_changes": "pricechange",
	} {
		i := slices.IndexFunc(tables, func(t *schema.Table) bool { return t.Name == table })
		tables = append(tables, versions(tables[i], index+"version_"))
	}
	return tables
}

// versions returns the table with the rows of another table that releases have
// replaced or removed. It has the same columns, so that the same query can read
// earlier releases; see docs/design/009-time-travel.md. A row's own key is an
// ordinary column, because a row has several versions.
func versions(of *schema.Table, indexPrefix string) *schema.Table {
	version := &schema.Column{Name: "version", Type: field.TypeInt, Increment: true}
	until := &schema.Column{Name: "until_release", Type: field.TypeInt}
	columns := []*schema.Column{version, until}
	byName := map[string]*schema.Column{}
	for _, column := range of.Columns {
		same := &schema.Column{Name: column.Name, Type: column.Type, Size: column.Size, Nullable: column.Nullable, Enums: column.Enums, Default: column.Default, SchemaType: column.SchemaType}
		columns = append(columns, same)
		byName[same.Name] = same
	}
	key := "tool_slug"
	if byName["slug"] != nil {
		key = "slug"
	}
	return &schema.Table{
		Name: of.Name + "_versions", Columns: columns, PrimaryKey: []*schema.Column{version},
		Indexes: []*schema.Index{
			{Name: indexPrefix + key + "_since_release", Columns: []*schema.Column{byName[key], byName["since_release"]}},
			{Name: indexPrefix + "until_release", Columns: []*schema.Column{until}},
		},
	}
}

// search returns the table that package search fills and reads in SQL: ent has no type
// for the sets of words that PostgreSQL stores.
func search() *schema.Table {
	small := map[string]string{dialect.Postgres: "integer"}
	id := &schema.Column{Name: "id", Type: field.TypeInt, SchemaType: small, Increment: false}
	slug := &schema.Column{Name: "slug", Type: field.TypeString}
	until := &schema.Column{Name: "until_release", Type: field.TypeInt, SchemaType: small, Default: math.MaxInt32}
	return &schema.Table{
		Name: "tool_search", PrimaryKey: []*schema.Column{id},
		Columns: []*schema.Column{id, slug,
			{Name: "words", Type: field.TypeOther, SchemaType: map[string]string{dialect.Postgres: "tsvector", dialect.SQLite: "text"}},
			{Name: "since_release", Type: field.TypeInt, SchemaType: small, Default: 1}, until,
		},
		Indexes: []*schema.Index{{Name: "tool_search_by_slug", Unique: true, Columns: []*schema.Column{slug, until}}},
	}
}

// grants returns the table of the applications that accounts have connected. The code
// that ent generates would be much longer than the queries in auth/grant.go.
func grants() *schema.Table {
	text := func(name string) *schema.Column { return &schema.Column{Name: name, Type: field.TypeString} }
	number := func(name string) *schema.Column { return &schema.Column{Name: name, Type: field.TypeInt} }
	or := func(c *schema.Column, value any) *schema.Column { c.Default = value; return c }
	id, account, client, access := text("id"), number("account_id"), text("client_id"), text("access_id")
	access.Nullable = true
	return &schema.Table{
		Name: "oauth_grants", PrimaryKey: []*schema.Column{id},
		Columns: []*schema.Column{id, account, client, text("client_name"), text("client_host"),
			{Name: "verified", Type: field.TypeBool},
			{Name: "private_queries", Type: field.TypeBool, Default: false},
			text("resource"), text("redirect_uri"), text("challenge"), text("code_hash"), number("code_expires_at"),
			access, or(text("access_hash"), ""), or(number("access_expires_at"), 0),
			or(text("refresh_hash"), ""), or(number("refresh_expires_at"), 0),
			number("created_at"), or(number("last_used_at"), 0),
		},
		Indexes: []*schema.Index{
			{Name: "oauth_grants_access_id_key", Unique: true, Columns: []*schema.Column{access}},
			{Name: "oauth_grants_account_id", Columns: []*schema.Column{account}},
			{Name: "oauth_grants_client_id", Columns: []*schema.Column{client}},
		},
		ForeignKeys: []*schema.ForeignKey{{
			Symbol: "oauth_grants_accounts", Columns: []*schema.Column{account}, OnDelete: schema.Cascade,
			RefTable: migrate.AccountsTable, RefColumns: migrate.AccountsTable.PrimaryKey,
		}},
	}
}
