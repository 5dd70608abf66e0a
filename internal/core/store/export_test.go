package store

import (
	"context"
	"database/sql"
)

// MigrateTo applies migrations up to a version, as an older binary would.
func (s *Store) MigrateTo(ctx context.Context, version int) error {
	steps, err := embedded(s.dialect)
	if err != nil {
		return err
	}
	return s.inMigrationTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, createMigrationTable); err != nil {
			return err
		}
		for _, m := range steps {
			if m.Version > version {
				return nil
			}
			if _, err := tx.ExecContext(ctx, m.sql); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, recordMigration, m.Version, m.Name, "then"); err != nil {
				return err
			}
		}
		return nil
	})
}
