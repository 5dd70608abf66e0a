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
// process or another, until ctx ends. If seen returns false, it is called again. An
// outage of the database is logged once.
func (s *Store) Watch(ctx context.Context, log *slog.Logger, seen func(*ent.Release) bool) {
	wake, stop := s.listen()
	defer stop()
	s.watched.Store(true)
	defer s.watched.Store(false)
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
		if healthy = err == nil; healthy && rel != nil && !sameRelease(rel, last) && seen(rel) {
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

// sameRelease reports whether two releases are identical and have the same history.
// Comparing numbers is not enough, because a restored backup reuses them.
func sameRelease(a, b *ent.Release) bool {
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

// updateNewest records a release that was read from the database as the newest;
// before is the newest known release when the read started. An older release means
// that a backup was restored, unless another reader has found a newer one in the
// meantime: then it returns false.
func (s *Store) updateNewest(before, release *ent.Release) bool {
	for {
		known := s.newest.Load()
		if isOlder(release, known) && !sameRelease(known, before) {
			return false
		}
		if s.newest.CompareAndSwap(known, release) {
			return true
		}
	}
}

// isOlder reports whether a release was read before the known one was published, or
// before the history was pruned.
func isOlder(release, known *ent.Release) bool {
	if known == nil || release == nil {
		return known != nil
	}
	pruned := release.ID == known.ID && release.ImportedAt.Equal(known.ImportedAt) && release.HistoryFrom < known.HistoryFrom
	return release.ID < known.ID || pruned
}

// CurrentRelease returns the newest release that readers see, or nil before the
// first import.
func (s *Store) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	before := s.newest.Load()
	release, err := NewestRelease(ctx, s.Read.Release)
	if err == nil && !s.updateNewest(before, release) {
		release = s.newest.Load()
	}
	return release, err
}
