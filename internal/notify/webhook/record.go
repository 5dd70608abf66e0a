package webhook

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/core/store"
)

// attemptBatch is how many rows go into one statement.
const attemptBatch = 100

// record writes down what came of a round, and tells whether it disabled the
// endpoint. What is not known to be sent is sent again, so it is tried for as
// long as an import may keep the database; as the server ends, for a while.
func (w *Webhooks) record(ctx context.Context, e *ent.Endpoint, b *batch) (disabled bool, err error) {
	ctx, cancel := outlive(ctx, w.times.record)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, w.times.locked)
	defer cancel()
	for waits := false; ; waits = true {
		disabled, err = w.recordOnce(ctx, e, b)
		if err == nil || ctx.Err() != nil {
			return disabled, err
		}
		if !waits {
			w.Log.Warn("what was sent cannot be written down yet", "endpoint", e.ID, "cause", store.Explain(err))
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(w.times.poll):
		}
	}
}

// outlive is a context that ends some time after ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { forget(); cancel() }
}

// recordOnce writes all of it or nothing.
func (w *Webhooks) recordOnce(ctx context.Context, e *ent.Endpoint, b *batch) (disabled bool, err error) {
	done, position := settled(e, b)
	now := w.now().UTC()
	err = w.Store.Update(ctx, func(tx *ent.Tx) error {
		disabled = false
		since, err := failingSince(ctx, tx, e, done)
		if err != nil {
			return err
		}
		health := healthAfter(e, since, done, now)
		// First, so that who moves it meanwhile waits for us, or we for them.
		found, err := health.write(ctx, tx, e)
		if err != nil || !found { // it was removed: there is nothing to remember
			return err
		}
		// Who moved it back to have events again is not moved forward.
		if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.Position(e.Position)).SetPosition(position).Exec(ctx); err != nil {
			return err
		}
		if err := recordAttempts(ctx, tx, e, done); err != nil {
			return err
		}
		if health.disable == "" {
			return planAgain(ctx, tx, e, done, now, health.notBefore)
		}
		disabled, err = disable(ctx, tx, e, health.disable)
		return err
	})
	return disabled, err
}

// disable ends sending, unless somebody has ended it meanwhile. That its owner
// is to be told is written with it: see tellOwner.
func disable(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, why string) (bool, error) {
	if _, err := tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx); err != nil {
		return false, err
	}
	n, err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.StateEQ(endpoint.StateActive)).
		SetState(endpoint.StateDisabled).SetWhy(why).SetUntold(true).Save(ctx)
	return n > 0, err
}

// settled are the tasks that have an outcome. The position stays before the
// first that has none: it is sent then.
func settled(e *ent.Endpoint, b *batch) (done []*task, position int) {
	for _, t := range b.tasks {
		if t.done {
			done = append(done, t)
		}
	}
	reached := e.Position
	for _, t := range b.tasks {
		switch {
		case t.again:
		case !t.done:
			return done, reached
		default:
			reached = t.number
		}
	}
	return done, b.position
}

func recordAttempts(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task) error {
	for begin := 0; begin < len(done); begin += attemptBatch {
		some := done[begin:min(begin+attemptBatch, len(done))]
		rows := make([]*ent.AttemptCreate, len(some))
		for i, t := range some {
			rows[i] = t.outcome.row(tx.Attempt.Create(), e.ID, t.number, t.kind, t.attempts+1)
		}
		if err := tx.Attempt.CreateBulk(rows...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// row is an attempt as it is kept.
func (o outcome) row(create *ent.AttemptCreate, endpoint, event int, kind string, number int) *ent.AttemptCreate {
	return create.SetEndpointID(endpoint).SetEvent(event).SetType(kind).SetNumber(number).SetAt(o.at.UTC()).
		SetStatus(o.status).SetTookMs(int(o.took / time.Millisecond)).SetAnswer(o.answer).SetDelivered(o.delivered)
}

// planAgain keeps when each event that did not arrive is tried again: at its
// time, and not before the receiver wants it.
func planAgain(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task, now, notBefore time.Time) error {
	for _, t := range done {
		next, again := time.Time{}, false
		if !t.outcome.delivered {
			next, again = nextAttempt(t.attempts+1, now)
		}
		if next.Before(notBefore) {
			next = notBefore
		}
		var err error
		switch {
		case again:
			err = tx.Delivery.Create().SetEndpointID(e.ID).SetEvent(t.number).SetAttempts(t.attempts+1).SetNextAt(next).
				OnConflictColumns(delivery.FieldEndpointID, delivery.FieldEvent).UpdateNewValues().Exec(ctx)
		case t.again:
			// Who wanted it again while it was on its way gets it again.
			_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.Event(t.number), delivery.NextAtLTE(t.due.UTC())).Exec(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
