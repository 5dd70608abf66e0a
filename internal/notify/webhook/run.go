package webhook

import (
	"context"
	"database/sql"
	"time"

	"github.com/riverqueue/river"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/predicate"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
)

// Run sends until ctx ends. Where nobody wants anything, it costs one look at
// an empty table.
func (w *Webhooks) Run(ctx context.Context) {
	var client *river.Client[*sql.Tx]
	var own life
	ticker := time.NewTicker(w.times.look)
	defer ticker.Stop()
	failing := false
	for ctx.Err() == nil {
		err := w.look(ctx, &client, &own)
		if err != nil && !failing && ctx.Err() == nil {
			w.Log.Warn("webhooks wait", "cause", store.Explain(err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if client != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.times.stop)
		defer cancel()
		_ = client.StopAndCancel(stopping)
	}
	w.client.CloseIdleConnections()
}

// look wakes up endpoints that have something to send: what is tried again,
// what is new, and what a job did not get to.
func (w *Webhooks) look(ctx context.Context, client **river.Client[*sql.Tx], own *life) error {
	any, err := w.Store.Current().Endpoint.Query().Exist(ctx)
	if err != nil || !any && *client == nil {
		return err
	}
	if *client == nil {
		ready := make(chan struct{})
		started, err := w.newRiver(ready)
		if err != nil {
			return err
		}
		// Its end is ours to say, after the last answers are written down.
		if err := started.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		close(ready)
		*client, own.id = started, started.ID()
		if err := w.forgetDead(ctx); err != nil {
			return err
		}
	}
	if err := w.beat(ctx, own); err != nil {
		return err
	}
	due, err := w.due(ctx)
	if err != nil {
		return err
	}
	return wakeUp(ctx, *client, due)
}

func (w *Webhooks) due(ctx context.Context) ([]*ent.Endpoint, error) {
	db := w.Store.Current()
	newest, err := journal.Newest(ctx, db.JournalEntry)
	if err != nil {
		return nil, err
	}
	// Ahead is one of a journal that was restored from a backup: it must be back
	// at its end before that goes on.
	behind := endpoint.And(endpoint.StateEQ(endpoint.StateActive), endpoint.PositionNEQ(newest),
		endpoint.Or(endpoint.FailuresLT(tired), endpoint.Not(endpoint.HasDeliveries())))
	again := endpoint.HasDeliveriesWith(delivery.NextAtLTE(w.now().UTC()))
	return db.Endpoint.Query().Where(endpoint.Or(
		endpoint.Untold(true),
		endpoint.And(endpoint.Or(behind, again), w.notLeftAlone()),
	)).All(ctx)
}

// notLeftAlone are the endpoints whose receivers did not ask for time.
func (w *Webhooks) notLeftAlone() predicate.Endpoint {
	return endpoint.Or(endpoint.NotBeforeIsNil(), endpoint.NotBeforeLTE(w.now().UTC()))
}
