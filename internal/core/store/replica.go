package store

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
)

// replica is a database that follows the one that is written to. It may lag
// behind, be one of several that lag differently, or be away: then the other
// one is read. What this process has shown of a release, it does not show
// older again.
type replica struct {
	current    *ent.Client // what is written to, for reading
	primary    *sql.DB
	statements *statements
	awayUntil  atomic.Int64 // nanoseconds
}

const (
	// tryAgain is how long a replica that failed is left alone.
	tryAgain = 5 * time.Second
	// followEvery is how often a replica is asked for new releases: it has
	// them a little later than a notification tells.
	followEvery = 250 * time.Millisecond
)

func (s *Store) followWith(primary *sql.DB, told Watch) {
	s.replica = &replica{primary: primary, statements: newStatements(primary), current: ent.NewClient(ent.Driver(watch(entsql.OpenDB(s.dialect, primary), poolPrimary, told)))}
	s.pollEvery = min(s.pollEvery, followEvery)
}

// away tells whether to do without the replica for now.
func (r *replica) away() bool { return r != nil && time.Now().UnixNano() < r.awayUntil.Load() }

// failed tells whether an error is the replica's own, so that the other
// database may know better; it is then left alone for a while.
func (r *replica) failed(ctx context.Context, err error) bool {
	if r == nil || ctx.Err() != nil || meaning(err) == "" {
		return false
	}
	r.awayUntil.Store(time.Now().Add(tryAgain).UnixNano())
	return true
}

// follow takes a release of the replica for the newest, unless it lags.
func (s *Store) follow(release *ent.Release) bool {
	for {
		known := s.newest.Load()
		if older(release, known) {
			return false
		}
		if s.newest.CompareAndSwap(known, release) { // or somebody just saw another
			return true
		}
	}
}

// saw takes over what the database that is written to said, which was asked
// when before was the newest. Less than that is a restored backup, unless
// somebody has seen more meanwhile: then this answer is late.
func (s *Store) saw(before, release *ent.Release) bool {
	for {
		known := s.newest.Load()
		if older(release, known) && !same(known, before) {
			return false
		}
		if s.newest.CompareAndSwap(known, release) {
			return true
		}
	}
}

func older(release, known *ent.Release) bool {
	return known != nil && (release == nil || release.ID < known.ID)
}

// Current reads what was just written, wherever others read.
func (s *Store) Current() *ent.Client {
	if s.replica != nil {
		return s.replica.current
	}
	return s.Read
}

// CurrentRelease is the newest release that readers see, or nil before the
// first import. A replica that says less than was seen before lags, unless the
// database that it follows says the same: then a backup was restored.
func (s *Store) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	if s.replica != nil && !s.replica.away() {
		release, err := NewestRelease(ctx, s.Read.Release)
		if !s.replica.failed(ctx, err) && (err != nil || s.follow(release)) {
			return release, explain(err)
		}
	}
	before := s.newest.Load()
	release, err := NewestRelease(ctx, s.Current().Release)
	if err == nil && !s.saw(before, release) {
		release = s.newest.Load()
	}
	return release, explain(err)
}
