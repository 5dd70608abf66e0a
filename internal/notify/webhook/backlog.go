package webhook

import (
	"context"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
)

// Counts are the attempts of this process by what came of them.
type Counts struct {
	Delivered   atomic.Int64 // answered with 2xx
	Refused     atomic.Int64 // answered otherwise
	Unreachable atomic.Int64 // not answered
}

func (c *Counts) add(o outcome) {
	switch {
	case o.delivered:
		c.Delivered.Add(1)
	case o.status > 0:
		c.Refused.Add(1)
	default:
		c.Unreachable.Add(1)
	}
}

// Backlog is what is still to be sent, by all servers together.
type Backlog struct {
	Endpoints map[string]int // by state
	Planned   int            // events that are to be tried again, now or later
	Oldest    time.Duration  // since when something could have been sent; 0 for nothing
}

// Backlog looks at it. What waits for its set time, or for an endpoint that
// takes nothing, is not late.
func (w *Webhooks) Backlog(ctx context.Context) (b Backlog, err error) {
	db := w.Store.Current()
	b.Endpoints = map[string]int{
		string(endpoint.StateActive): 0, string(endpoint.StatePaused): 0, string(endpoint.StateDisabled): 0,
	}
	var states []struct {
		State string
		Count int
	}
	if err := db.Endpoint.Query().GroupBy(endpoint.FieldState).Aggregate(ent.Count()).Scan(ctx, &states); err != nil {
		return b, store.Explain(err)
	}
	if len(states) == 0 {
		return b, nil
	}
	for _, s := range states {
		b.Endpoints[s.State] = s.Count
	}
	if b.Planned, err = db.Delivery.Query().Count(ctx); err != nil {
		return b, store.Explain(err)
	}
	since, err := w.oldest(ctx)
	if err != nil {
		return b, store.Explain(err)
	}
	if !since.IsZero() {
		b.Oldest = max(0, w.now().Sub(since))
	}
	return b, nil
}

// oldest is when the first thing was due that is not sent yet, or zero.
func (w *Webhooks) oldest(ctx context.Context) (since time.Time, err error) {
	db := w.Store.Current()
	first, err := db.Delivery.Query().Where(delivery.NextAtLTE(w.now().UTC()), delivery.HasEndpointWith(w.notLeftAlone())).Order(delivery.ByNextAt()).First(ctx)
	switch {
	case err == nil:
		since = first.NextAt
	case !ent.IsNotFound(err):
		return since, err
	}
	newest, err := journal.Newest(ctx, db.JournalEntry)
	if err != nil {
		return since, err
	}
	behind, err := db.Endpoint.Query().
		Where(endpoint.StateEQ(endpoint.StateActive), endpoint.PositionLT(newest), endpoint.FailuresLT(tired), w.notLeftAlone()).
		Order(endpoint.ByPosition()).First(ctx)
	if err != nil {
		return since, ignoreNotFound(err)
	}
	event, err := db.JournalEntry.Query().Where(journalentry.IDGT(behind.Position)).Order(journalentry.ByID()).WithRelease().First(ctx)
	if err != nil {
		return since, ignoreNotFound(err)
	}
	if published := event.Edges.Release.ImportedAt; since.IsZero() || published.Before(since) {
		since = published
	}
	return since, nil
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}
