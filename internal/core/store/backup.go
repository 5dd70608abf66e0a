package store

import (
	"context"
	"errors"

	"entgo.io/ent/dialect"
)

// ErrNotEmbedded is the error of who wants a copy of a PostgreSQL from us.
var ErrNotEmbedded = errors.New("PostgreSQL has its own tools for backups: use pg_dump, as deploy/README.md says")

// Backup writes the embedded database, as it is at one moment, to a file that
// is new or empty. Others may read and write meanwhile. What it writes is one
// file that stands for itself, as a copy of the database's own files would not.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.dialect != dialect.SQLite {
		return ErrNotEmbedded
	}
	_, err := s.writer.ExecContext(ctx, "VACUUM INTO $1", file)
	return explain(err)
}
