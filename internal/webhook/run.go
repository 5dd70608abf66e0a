package webhook

import (
	"context"
	"database/sql"
	"time"

	"github.com/riverqueue/river"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/journal"
	"palmares/internal/store"
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
		started, err := w.newRiver()
		if err != nil {
			return err
		}
		// Its end is ours to say, after the last answers are written down.
		if err := started.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
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

func (w *Webhooks) due(ctx context.Context) ([]int, error) {
	db := w.Store.Current()
	newest, err := journal.Newest(ctx, db.JournalEntry)
	if err != nil {
		return nil, err
	}
	// Ahead is one of a journal that was restored from a backup: it must be back
	// at its end before that goes on.
	behind, err := db.Endpoint.Query().Where(endpoint.StateEQ(endpoint.StateActive), endpoint.PositionNEQ(newest),
		endpoint.Or(endpoint.FailuresLT(tired), endpoint.Not(endpoint.HasDeliveries()))).IDs(ctx)
	if err != nil {
		return nil, err
	}
	var again []int
	err = db.Delivery.Query().Where(delivery.NextAtLTE(w.now().UTC())).Unique(true).Select(delivery.FieldEndpointID).Scan(ctx, &again)
	if err != nil && !ent.IsNotFound(err) {
		return nil, err
	}
	return append(behind, again...), nil
}
