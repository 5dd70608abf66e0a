package store

import (
	"context"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"

	"palmares/ent/migrate"
)

// Drift returns the statements that would bring the database from its
// migrations to the ent schema: none when the two agree. It changes nothing.
func (s *Store) Drift(ctx context.Context) (string, error) {
	var statements strings.Builder
	err := migrate.NewSchema(entsql.OpenDB(s.dialect, s.writer)).WriteTo(ctx, &statements,
		schema.WithDropColumn(true), schema.WithDropIndex(true), schema.WithHooks(s.compareBytes))
	if err != nil {
		return "", err
	}
	// Migrations run in a transaction of ours, inside which the pragma does nothing.
	var kept []string
	for line := range strings.Lines(statements.String()) {
		switch line = strings.TrimSpace(line); {
		case line == "", line == "BEGIN;", line == "COMMIT;", strings.HasPrefix(line, "PRAGMA "):
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n"), nil
}

// compareBytes gives every text column of PostgreSQL the "C" collation, so
// that both databases order text alike, whatever locale the server has.
func (s *Store) compareBytes(next schema.Creator) schema.Creator {
	return schema.CreateFunc(func(ctx context.Context, tables ...*schema.Table) error {
		if s.dialect == dialect.Postgres {
			for _, table := range tables {
				for _, column := range table.Columns {
					if column.Type == field.TypeString || column.Type == field.TypeEnum {
						column.Collation = "C"
					}
				}
			}
		}
		return next.Create(ctx, tables...)
	})
}
