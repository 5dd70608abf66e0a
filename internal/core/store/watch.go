package store

import (
	"context"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"
	"github.com/lib/pq"

	"palmares/ent"
)

// pollTimeout keeps a hanging database from silencing the watch.
const pollTimeout = 5 * time.Second

// Watch calls seen with the current release and with each newer one, from
// this process or another, until ctx ends. What seen returns false for is told
// again. A database that is away for a
// while is told once, and watched again when it is back.
func (s *Store) Watch(ctx context.Context, log *slog.Logger, seen func(*ent.Release) bool) {
	wake, stop := s.listen()
	defer stop()
	ticker := time.NewTicker(s.pollEvery)
	defer ticker.Stop()

	var last *ent.Release // releases count up, but a restored backup goes back
	healthy := true
	for {
		rel, err := s.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if healthy {
				log.Warn("cannot see new releases: the database does not answer", "cause", err)
			}
			healthy = false
		default:
			if !healthy {
				log.Info("the database answers again")
			}
			healthy = true
			if rel != nil && !same(rel, last) && seen(rel) {
				last = rel
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-ticker.C:
		}
	}
}

// same tells whether two releases are one, not only of one number.
func same(a, b *ent.Release) bool {
	return a != nil && b != nil && a.ID == b.ID && a.ImportedAt.Equal(b.ImportedAt)
}

func (s *Store) poll(ctx context.Context) (*ent.Release, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return s.CurrentRelease(ctx)
}

// listen subscribes to the notifications of Announce. SQLite has none: its
// channel stays silent and the poll does the work.
func (s *Store) listen() (<-chan *pq.Notification, func()) {
	if s.dialect != dialect.Postgres {
		return nil, func() {}
	}
	// A lost connection is made again in the background; each reconnection
	// wakes the watch too, since notifications may have been missed meanwhile.
	listener := pq.NewListener(s.url, 100*time.Millisecond, 5*time.Second, nil)
	// Listen waits for the first connection, which a poll need not.
	go func() { _ = listener.Listen(releaseChannel) }()
	return listener.Notify, func() { _ = listener.Close() }
}
