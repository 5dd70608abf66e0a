package store

import (
	"context"
	"time"

	"entgo.io/ent/dialect"
)

// ClockOffset returns how far the database server's clock is ahead of now; 0
// for SQLite, which has no clock of its own.
func (s *Store) ClockOffset(ctx context.Context, now time.Time) (time.Duration, error) {
	if s.dialect != dialect.Postgres {
		return 0, nil
	}
	var seconds float64
	if err := s.keys.QueryRowContext(ctx, "SELECT extract(epoch FROM clock_timestamp())::float8").Scan(&seconds); err != nil {
		return 0, explain(err)
	}
	return time.UnixMicro(int64(seconds * 1e6)).Sub(now), nil
}
