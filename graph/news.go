package graph

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

// news is how streams hear of a release. It carries no release: who hears the
// signal reads the journal on from where they are, so that none is missed.
type news struct {
	mu    sync.Mutex
	count int           // of announcements
	next  chan struct{} // closed by the next announcement
	epoch chan struct{} // closed when release numbers begin anew
	reads singleflight.Group
}

// Announce tells streams that there is a new release. It never blocks.
func (e *Executor) Announce() { e.news.announce() }

func (n *news) announce() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count++
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

func (n *news) restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.epoch != nil {
		close(n.epoch)
		n.epoch = nil
	}
}

// wait gives the signals of the next announcement, and of a new beginning. It
// is called before the journal is read: what comes in between is in either.
func (n *news) wait() (next, epoch <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	if n.epoch == nil {
		n.epoch = make(chan struct{})
	}
	return n.next, n.epoch
}

// heard is how many announcements there were.
func (n *news) heard() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

// publicationsAtOnce is how many missed releases are read together.
const publicationsAtOnce = 100

// newsTimeout is for one look into the journal.
const newsTimeout = 5 * time.Second

// publicationsAfter reads what was published after an event, oldest first.
// Streams that wait for the same share one reading.
func (e *Executor) publicationsAfter(ctx context.Context, after int) ([]*journal.Event, error) {
	return e.readPublications(ctx, journal.Query{After: after, Limit: publicationsAtOnce})
}

// lastPublication is the number of the newest event that tells of a release; 0
// before the first.
func (e *Executor) lastPublication(ctx context.Context) (int, error) {
	events, err := e.readPublications(ctx, journal.Query{NewestFirst: true, Limit: 1})
	if err != nil || len(events) == 0 {
		return 0, err
	}
	return events[0].Number, nil
}

// readPublications waits no longer than newsTimeout, and no longer than its
// caller: a query to a frozen database ignores deadlines.
func (e *Executor) readPublications(ctx context.Context, q journal.Query) ([]*journal.Event, error) {
	q.Types = []string{journal.EventCatalogPublished}
	// A read that started before an announcement must not serve streams that
	// were woken by it.
	reading := e.news.reads.DoChan(fmt.Sprint(q, e.news.heard()), func() (_ any, err error) {
		defer func() {
			if caught := recover(); caught != nil { // it would end the process: no caller can recover it
				err = fmt.Errorf("panic: %v", caught)
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), newsTimeout) // not the caller's: others wait for it, too
		defer cancel()
		var events []*journal.Event
		err = e.catalog.Reading(ctx, func(ctx context.Context, release *ent.Release) (err error) {
			if events = nil; release == nil {
				return nil
			}
			q.UpTo = release.ID
			events, err = journal.Read(ctx, e.catalog.Client().JournalEntry, q)
			return err
		})
		return events, err
	})
	patience := time.NewTimer(newsTimeout)
	defer patience.Stop()
	select {
	case found := <-reading:
		if found.Err != nil {
			return nil, found.Err
		}
		return found.Val.([]*journal.Event), nil
	case <-patience.C:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
