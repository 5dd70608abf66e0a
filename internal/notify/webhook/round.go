package webhook

import (
	"context"
	"errors"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/catalog/journal"
)

const (
	// roundSize is how many events are sent before what came of them is
	// written down: so many may be sent again after a crash.
	roundSize = 200
	// tired is after how many failures in a row an endpoint is only tried,
	// one event at a time, until one arrives.
	tired = 20
)

// task is an event to send to an endpoint.
type task struct {
	number   int // of the event
	kind     string
	body     []byte    // until it is sent: a round holds few of them
	attempts int       // made before
	again    bool      // it has a delivery
	due      time.Time // since when, if so
	outcome  outcome
	done     bool // there is an outcome
}

// round sends what is due to an endpoint, once, and tells whether there may be
// more. Where mayBegin says no, nothing more is begun; when ctx ends, what is
// on its way is cut off.
func (w *Webhooks) round(ctx context.Context, mayBegin func() bool, id int) (more bool, err error) {
	e, err := w.Store.Current().Endpoint.Query().Where(endpoint.ID(id)).WithAccount().Only(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	switch {
	case err != nil:
		return false, err
	case e.Edges.Account == nil: // deleted between two statements, and the endpoint with it
		return false, nil
	case e.Untold:
		return false, w.tellOwner(ctx, e)
	case e.State != endpoint.StateActive || !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks:
		return false, w.skip(ctx, e)
	case e.NotBefore != nil && w.now().Before(*e.NotBefore):
		return false, nil
	}
	out := w.newSender(e, mayBegin)
	b := &batch{position: e.Position}
	err = w.sendBatch(ctx, out, b)
	out.wait()
	if len(b.tasks) == 0 && b.position == e.Position {
		return false, err
	}
	disabled, unwritten := w.record(ctx, e, b)
	return len(b.tasks) >= roundSize || disabled, errors.Join(err, unwritten)
}

// skip passes over what an endpoint that sends nothing does not get, so that
// nothing piles up. How it did before is no matter when it sends again. One
// that sends again already is not touched: what was published since is its own.
func (w *Webhooks) skip(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		// Read before it is seen that nothing has changed.
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		n, err := tx.Endpoint.Update().
			Where(endpoint.ID(e.ID), endpoint.StateEQ(e.State), endpoint.HasAccountWith(account.PlanEQ(e.Edges.Account.Plan))).
			SetPosition(newest).SetFailures(0).ClearFailingSince().ClearNotBefore().Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx)
		return err
	})
}
