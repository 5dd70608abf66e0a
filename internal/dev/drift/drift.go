// Package drift compares the migrations with the ent schema. Start reading at
// Statements.
package drift

import (
	"context"
	"database/sql"
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

// Tables returns the tables of the ent schema and those of their history.
func Tables() []*schema.Table {
	tables := slices.Clone(migrate.Tables)
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
