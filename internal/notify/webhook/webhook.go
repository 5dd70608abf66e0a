// Package webhook delivers the events of the journal to the endpoints of
// accounts, following the Standard Webhooks specification.
//
// An endpoint has a position in the journal. The events after it are sent in order,
// individually or in batches. An event that could not be delivered gets a Delivery
// row with the time of its next attempt, and so does a catalog.published that has to
// wait for an earlier event. Positions and deliveries determine what is due, so an
// import schedules webhooks simply by writing its journal entries. Servers share the
// work by leasing endpoints; see Run.
package webhook

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
)

// Config configures Webhooks.
type Config struct {
	PublicURL   string
	ServiceName string
	Store       *store.Store
	Log         *slog.Logger
	// Release returns the newest release, which says what slugs exist.
	Release func(context.Context) (*release.Release, error)
	// Loopback allows endpoints on this machine, even over plain HTTP, for servers
	// that are only reachable from this machine themselves.
	Loopback bool
	// Transport sends the requests. If it is nil, they only reach addresses that the
	// policy allows.
	Transport Transport
}

// Webhooks manages endpoints and delivers events to them.
type Webhooks struct {
	Config
	transport  Transport
	resolver   *net.Resolver // nil for the system's resolver
	now        func() time.Time
	timing     timing
	maxWorkers int
	// reading is locked while events are read, to limit memory use: events can be
	// large, and reading one takes several times its size.
	reading sync.Mutex
	tests   testCounter

	Counts Counts
}

// New returns Webhooks that deliver nothing until Run is called.
func New(cfg Config) *Webhooks {
	w := &Webhooks{Config: cfg, now: time.Now, timing: defaultTiming, maxWorkers: defaultWorkers, tests: testCounter{sent: map[int][]time.Time{}}}
	if w.transport = cfg.Transport; w.transport == nil {
		w.transport = w.newTransport()
	}
	return w
}

// Counts counts the attempts of this process by outcome.
type Counts struct {
	Delivered   atomic.Int64 // status 2xx
	Refused     atomic.Int64 // any other status
	Unreachable atomic.Int64 // no response
}

func (c *Counts) add(o outcome) {
	switch {
	case o.delivered():
		c.Delivered.Add(1)
	case o.status > 0:
		c.Refused.Add(1)
	default:
		c.Unreachable.Add(1)
	}
}

// Backlog summarizes the pending deliveries of all servers.
type Backlog struct {
	Endpoints map[string]int // by state
	Retries   int            // events that will be sent again, or wait for an earlier one
	OldestDue time.Duration  // how long the oldest due event has been waiting; 0 if none is due
}

// Backlog returns the current backlog. Events that wait for their retry time,
// or whose endpoint accepts nothing at the moment, are not overdue.
func (w *Webhooks) Backlog(ctx context.Context) (b Backlog, err error) {
	db := w.Store.Read
	b.Endpoints = map[string]int{}
	var states []struct {
		State string
		Count int
	}
	err = db.Endpoint.Query().GroupBy(endpoint.FieldState).Aggregate(ent.Count()).Scan(ctx, &states)
	if err != nil || len(states) == 0 {
		return b, err
	}
	for _, s := range states {
		b.Endpoints[s.State] = s.Count
	}
	if b.Retries, err = db.Delivery.Query().Count(ctx); err != nil {
		return b, err
	}
	since, err := w.oldestDue(ctx)
	if err == nil && !since.IsZero() {
		b.OldestDue = max(0, w.now().Sub(since))
	}
	return b, err
}

// oldestDue returns when the oldest due event became due; zero if none is due.
func (w *Webhooks) oldestDue(ctx context.Context) (since time.Time, err error) {
	db := w.Store.Read
	retry, err := db.Delivery.Query().Where(delivery.NextAtLTE(w.now().UTC()), delivery.HasEndpointWith(w.acceptsEvents())).
		Order(delivery.ByNextAt()).First(ctx)
	if err == nil {
		since = retry.NextAt
	} else if !ent.IsNotFound(err) {
		return since, err
	}
	newest, err := journal.Newest(ctx, db.JournalEntry)
	if err != nil {
		return since, err
	}
	behind, err := db.Endpoint.Query().
		Where(endpoint.StateEQ(endpoint.StateActive), endpoint.PositionLT(newest), endpoint.FailuresLT(probeAfter), w.acceptsEvents()).
		Order(endpoint.ByPosition()).First(ctx)
	if err != nil {
		return since, ent.MaskNotFound(err)
	}
	event, err := db.JournalEntry.Query().Where(journalentry.IDGT(behind.Position)).Order(journalentry.ByID()).WithRelease().First(ctx)
	if err != nil {
		return since, ent.MaskNotFound(err)
	}
	if published := event.Edges.Release.ImportedAt; since.IsZero() || published.Before(since) {
		since = published
	}
	return since, nil
}
