package store

import (
	"context"
	"log/slog"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"

	"palmares/ent"
	"palmares/ent/release"
)

// NewestRelease reads the newest release with any client or transaction. It returns
// nil before the first import.
func NewestRelease(ctx context.Context, releases *ent.ReleaseClient) (*ent.Release, error) {
	rel, err := releases.Query().Order(release.ByID(entsql.OrderDesc())).First(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return rel, err
}

// pollTimeout prevents a database that hangs from blocking Watch.
const pollTimeout = 5 * time.Second

// Watch calls seen with the current release and each newer one, imported by this
// process or another, until ctx ends. After a backup is restored, the release may be
// older, or nil if the backup has none. If seen returns false, it is called again. An
// outage of the database is logged once.
func (s *Store) Watch(ctx context.Context, log *slog.Logger, seen func(*ent.Release) bool) {
	wake, stop := s.listen()
	defer stop()
	ticker := time.NewTicker(s.pollEvery)
	defer ticker.Stop()

	var last *ent.Release // numbers grow, but a restored backup goes back
	healthy := true
	for {
		rel, err := s.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && healthy:
			log.Warn("polling for new releases failed, will retry", "cause", err)
		case err == nil && !healthy:
			log.Info("polling for new releases works again")
		}
		changed := (rel != nil || last != nil) && !SameRelease(rel, last)
		if healthy = err == nil; healthy && changed && seen(rel) {
			last = rel
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-ticker.C:
		}
	}
}

// SameRelease reports whether two releases are identical and have the same history.
// Comparing numbers is not enough, because a restored backup reuses them.
func SameRelease(a, b *ent.Release) bool {
	return a != nil && b != nil && a.ID == b.ID && a.ImportedAt.Equal(b.ImportedAt) && a.HistoryFrom == b.HistoryFrom
}

func (s *Store) poll(ctx context.Context) (*ent.Release, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return s.CurrentRelease(ctx)
}

// listen subscribes to the notifications that NotifyRelease sends. SQLite has
// none, so Watch only polls it.
func (s *Store) listen() (<-chan *pq.Notification, func()) {
	if s.dialect != dialect.Postgres {
		return nil, func() {}
	}
	// The listener reconnects in the background. Each reconnection also wakes Watch,
	// because notifications may have been missed.
	listener := pq.NewListener(s.url, 100*time.Millisecond, 5*time.Second, nil)
	// Listen waits for the first connection, which must not delay the first poll.
	go func() { _ = listener.Listen(releaseChannel) }()
	return listener.Notify, func() { _ = listener.Close() }
}

// CurrentRelease returns the newest release, or nil before the first import.
func (s *Store) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	return NewestRelease(ctx, s.Read.Release)
}
