package release

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
)

// Database is where releases are read from.
type Database interface {
	// Snapshot calls read with a client that sees one state of the database, and with
	// the newest release.
	Snapshot(ctx context.Context, read func(db *ent.Client, newest *ent.Release) error) error
	// Verify returns store.ErrNoRelease unless a release can still be read.
	Verify(ctx context.Context, release *ent.Release) error
	CurrentRelease(ctx context.Context) (*ent.Release, error)
	Client() *ent.Client
	Dialect() string
	Watch(ctx context.Context, log *slog.Logger, seen func(*ent.Release) bool)
}

// Catalog keeps the newest release in memory.
type Catalog struct {
	db      Database
	log     *slog.Logger
	budget  int64             // for earlier releases, in bytes
	reserve func(bytes int64) // called with the memory that the releases take

	current  atomic.Pointer[Release]
	mu       sync.Mutex // held while the current release or earlier ones are replaced
	followed atomic.Bool
	loading  chan struct{} // holds a token while a release is loaded
	loaded   chan struct{} // closed when the first one is in memory
	complete chan struct{} // closed when its history is, too

	announcing sync.Mutex
	published  func(*ent.Release) bool // of Follow, or nil
}

// ErrPartial is returned for what needs the history of a release, while only its own state
// is in memory.
var ErrPartial = errors.New("the history of the catalog is not in memory yet")

// NewCatalog returns a catalog that has nothing in memory. Earlier releases take at
// most budget bytes; reserve may be nil.
func NewCatalog(db Database, log *slog.Logger, budget int64, reserve func(bytes int64)) *Catalog {
	return &Catalog{
		db: db, log: log, budget: budget, reserve: reserve,
		loading: make(chan struct{}, 1), loaded: make(chan struct{}), complete: make(chan struct{}),
	}
}

// retryAfter is how long Follow waits after it failed to load the first release.
const retryAfter = time.Second

// Follow loads each release when it is published, and calls published with it,
// until ctx ends: with nil if a backup without releases was restored. If published
// returns false, it is called again. Meanwhile, Newest never waits for the database,
// except for the first release.
func (c *Catalog) Follow(ctx context.Context, published func(*ent.Release) bool) {
	c.announcing.Lock()
	c.published = published
	c.announcing.Unlock()
	c.followed.Store(true)
	defer c.followed.Store(false)
	load := func() *Release {
		r, err := c.Load(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "loading the catalog failed, will retry", "cause", err)
		}
		return r
	}
	for load() == nil { // Watch would wait for the first import
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return
		}
	}
	c.db.Watch(ctx, c.log, func(*ent.Release) bool {
		r := load()
		return r != nil && c.announce(r)
	})
}

// announce calls what Follow was given with a release.
func (c *Catalog) announce(r *Release) bool {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	return c.published == nil || c.published(r.Info)
}

// reload loads the newest release when that in memory has turned out to be gone, without
// waiting for Follow to notice. It is announced before it is read: otherwise cached responses
// of the release before would follow those of the older one.
func (c *Catalog) reload(ctx context.Context) (*Release, error) {
	r, err := c.Load(ctx)
	if err == nil {
		c.announce(r)
	}
	return r, err
}

// Size returns how many bytes the release in memory takes, approximately.
func (c *Catalog) Size() int64 {
	if known := c.current.Load(); known != nil {
		return known.size
	}
	return 0
}

// Newest returns the newest release: the one in memory if it is kept up to date by
// Follow, or else the newest in the database. It may be partial.
func (c *Catalog) Newest(ctx context.Context) (*Release, error) { return c.when(ctx, c.loaded) }

// Complete is Newest for what needs the history.
func (c *Catalog) Complete(ctx context.Context) (*Release, error) { return c.when(ctx, c.complete) }

func (c *Catalog) when(ctx context.Context, loaded <-chan struct{}) (*Release, error) {
	if !c.followed.Load() {
		return c.Load(ctx)
	}
	select {
	case <-loaded:
		return c.current.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// InMemory returns the release in memory, which may be outdated unless Follow keeps
// it up to date. It returns nil if there is none.
func (c *Catalog) InMemory() *Release { return c.current.Load() }

// Loaded reports whether a release is in memory, or there is none yet.
func (c *Catalog) Loaded() bool { return c.InMemory() != nil }

// Load makes sure that the newest release is in memory. The first time, requests that need
// no history can read it before its history is loaded, however long that is.
func (c *Catalog) Load(ctx context.Context) (*Release, error) {
	newest, err := c.db.CurrentRelease(ctx)
	if err != nil {
		return nil, err
	}
	if known := c.current.Load(); known.is(newest) {
		return known, nil
	}
	select { // one at a time, so that none replaces a newer one
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	previous := c.current.Load()
	if previous.is(newest) {
		return previous, nil
	}
	if previous.Partial() { // reading its history failed
		previous = nil
	}
	var r *Release
	err = c.db.Snapshot(ctx, func(db *ent.Client, newest *ent.Release) (err error) {
		if previous == nil && newest != nil && newest.HistoryFrom < newest.ID {
			if previous, err = load(ctx, db, c.db.Dialect(), newest, nil, true); err != nil {
				return err
			}
			c.store(previous, c.loaded)
		}
		r, err = load(ctx, db, c.db.Dialect(), newest, previous, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.store(r, c.loaded, c.complete)
	c.log.InfoContext(ctx, "catalog loaded", "release", r.Number(), "tools", len(r.Tools), "bytes", r.size)
	return r, nil
}

// store makes a release the current one, and closes what has been waited for.
func (c *Catalog) store(r *Release, reached ...chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(r)
	c.reserved(r)
	for _, milestone := range reached {
		select {
		case <-milestone:
		default:
			close(milestone)
		}
	}
}

// Partial reports whether a release has no history yet.
func (r *Release) Partial() bool { return r != nil && r.history.partial }

// is reports whether a release is the given one, with its history.
func (r *Release) is(info *ent.Release) bool {
	return r != nil && !r.Partial() && (r.Info == nil && info == nil || store.SameRelease(r.Info, info))
}

// Verify returns store.ErrNoRelease unless a release can still be read. Statements
// that select its rows are only complete if it can be read afterwards.
func (c *Catalog) Verify(ctx context.Context, r *Release) error {
	if r.Info == nil {
		return nil
	}
	return c.db.Verify(ctx, r.Info)
}

// Earlier returns a release before a newer one, which must be one of its All.
func (c *Catalog) Earlier(newer *Release, info *ent.Release) *Release {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(newer.earlier, func(r *Release) bool { return r.Info == info })
	var found *Release
	if i >= 0 {
		found = newer.earlier[i]
		newer.earlier = slices.Delete(newer.earlier, i, i+1)
	} else {
		found = newer.earlierRelease(info)
	}
	newer.earlier = append(newer.earlier, found)
	if most := max(1, int(c.budget/newer.earlierSize())); len(newer.earlier) > most {
		newer.earlier = slices.Delete(newer.earlier, 0, len(newer.earlier)-most)
	}
	if newer == c.current.Load() { // an operation may still read a superseded release
		c.reserved(newer)
	}
	return found
}

// earlierSize estimates how many bytes an earlier release takes: lists of pointers in
// all orders, its search index and its comparisons.
func (r *Release) earlierSize() int64 {
	const pointer, comparison = 8 + 4, 100
	return int64(len(r.Tools))*pointer*int64(len(r.orders)+2) + int64(len(r.Comparisons))*comparison + 1
}

// reserved reports how much memory is used.
func (c *Catalog) reserved(newest *Release) {
	if c.reserve != nil {
		c.reserve(newest.size + int64(len(newest.earlier)+1)*newest.earlierSize())
	}
}
