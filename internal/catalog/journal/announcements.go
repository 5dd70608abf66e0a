package journal

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/ent"
)

// Announcements wake streams when there is a new release. They carry no data: each
// stream continues in the journal where it stopped and misses nothing.
type Announcements struct {
	entries func() *ent.JournalEntryClient
	newest  func(context.Context) (release int, err error)

	mu    sync.Mutex
	count int
	next  chan struct{} // closed by the next announcement
	epoch chan struct{} // closed when release numbers start over
	reads singleflight.Group
}

// NewAnnouncements returns announcements of releases up to the newest one, which is 0
// before the first import.
func NewAnnouncements(
	entries func() *ent.JournalEntryClient, newest func(context.Context) (release int, err error),
) *Announcements {
	return &Announcements{entries: entries, newest: newest, next: make(chan struct{}), epoch: make(chan struct{})}
}

// AnnounceRelease wakes streams after a new release. It never blocks.
func (a *Announcements) AnnounceRelease() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	close(a.next)
	a.next = make(chan struct{})
}

// EndStreams ends all streams because release numbers start over: their positions
// no longer exist. Their clients reconnect.
func (a *Announcements) EndStreams() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.epoch)
	a.epoch = make(chan struct{})
}

// NextRelease returns the signals of the next announcement and the next epoch. Call
// it before Publications, so that no release is missed in between.
func (a *Announcements) NextRelease() (next, epoch <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next, a.epoch
}

// readTimeout limits how long a stream waits for the database.
const readTimeout = 5 * time.Second

// Publications reads the events of releases. All streams at the same
// position share one query.
func (a *Announcements) Publications(ctx context.Context, q Query) ([]*Event, error) {
	q.Types = []string{EventCatalogPublished}
	a.mu.Lock()
	count := a.count
	a.mu.Unlock()
	// The key has the number of announcements, so that a query that started before
	// an announcement is not used by the streams that the announcement woke.
	found, err, _ := a.reads.Do(fmt.Sprint(q, count), func() (_ any, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // shared with other callers
		defer cancel()
		if q.UpTo, err = a.newest(ctx); err != nil || q.UpTo == 0 {
			return []*Event(nil), err
		}
		return Read(ctx, a.entries(), q)
	})
	if err != nil {
		return nil, err
	}
	return found.([]*Event), nil
}
