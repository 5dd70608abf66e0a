package webhook

import (
	"context"
	"fmt"
	"time"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/mail"
)

// attemptBatch is how many rows go into one statement.
const attemptBatch = 100

// record writes down what came of a round, all of it or nothing.
func (w *Webhooks) record(ctx context.Context, e *ent.Endpoint, tasks []*task, position int) error {
	ctx, cancel := context.WithTimeout(ctx, w.times.record)
	defer cancel()
	done, position := settled(e, tasks, position)
	health := healthAfter(e, done, w.now().UTC())
	disabled := false
	err := w.Store.Update(ctx, func(tx *ent.Tx) error {
		// First, so that who moves it meanwhile waits for us, or we for them.
		found, err := health.write(ctx, tx, e)
		if err != nil || !found { // it was removed: there is nothing to remember
			return err
		}
		// Who moved it back to have events again is not moved forward.
		if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.Position(e.Position)).SetPosition(position).Exec(ctx); err != nil {
			return err
		}
		if err := w.recordAttempts(ctx, tx, e, done); err != nil {
			return err
		}
		if health.disable == "" {
			return w.planAgain(ctx, tx, e, done)
		}
		disabled, err = disable(ctx, tx, e, health.disable)
		return err
	})
	if err == nil && disabled {
		w.Mail.Post(mail.WebhookDisabled(e.Edges.Account.Email, w.ServiceName, e.URL, health.disable, fmt.Sprintf("%s/account/webhooks/%d", w.PublicURL, e.ID)))
	}
	return err
}

// disable ends sending, unless somebody has ended it meanwhile.
func disable(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, why string) (bool, error) {
	if _, err := tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx); err != nil {
		return false, err
	}
	n, err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.StateEQ(endpoint.StateActive)).
		SetState(endpoint.StateDisabled).SetWhy(why).Save(ctx)
	return n > 0, err
}

// settled are the tasks that have an outcome. The position stays before the
// first that has none: it is sent then.
func settled(e *ent.Endpoint, tasks []*task, position int) ([]*task, int) {
	var done []*task
	for _, t := range tasks {
		if t.done {
			done = append(done, t)
		}
	}
	reached := e.Position
	for _, t := range tasks {
		switch {
		case t.again:
		case !t.done:
			return done, reached
		default:
			reached = t.event.Number
		}
	}
	return done, position
}

// health is how an endpoint does.
type health struct {
	failures     int
	failingSince *time.Time
	disable      string // why it is to be disabled, if so
}

func healthAfter(e *ent.Endpoint, done []*task, now time.Time) health {
	h := health{failures: e.Failures, failingSince: e.FailingSince}
	for _, t := range done {
		switch {
		case t.outcome.delivered:
			h.failures, h.failingSince = 0, nil
		case h.failingSince == nil:
			since := t.outcome.at.UTC()
			h.failures, h.failingSince = h.failures+1, &since
		default:
			h.failures++
		}
		if t.outcome.gone {
			h.disable = "its receiver answered 410: it wants no more"
		}
	}
	if h.disable == "" && h.failingSince != nil && now.Sub(*h.failingSince) >= patience {
		h.disable = "nothing has arrived there for 5 days"
	}
	return h
}

// write tells whether the endpoint is still there.
func (h health) write(ctx context.Context, tx *ent.Tx, e *ent.Endpoint) (found bool, err error) {
	update := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetFailures(h.failures)
	if h.failingSince != nil {
		update.SetFailingSince(*h.failingSince)
	} else {
		update.ClearFailingSince()
	}
	n, err := update.Save(ctx)
	return n > 0, err
}

func (w *Webhooks) recordAttempts(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task) error {
	for begin := 0; begin < len(done); begin += attemptBatch {
		some := done[begin:min(begin+attemptBatch, len(done))]
		rows := make([]*ent.AttemptCreate, len(some))
		for i, t := range some {
			rows[i] = t.outcome.row(tx.Attempt.Create(), e.ID, t.event.Number, t.event.Type, t.attempts+1)
		}
		if err := tx.Attempt.CreateBulk(rows...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// planAgain keeps when each event that did not arrive is tried again.
func (w *Webhooks) planAgain(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task) error {
	for _, t := range done {
		next, again := time.Time{}, false
		if !t.outcome.delivered {
			next, again = nextAttempt(t.attempts+1, w.now().UTC(), t.outcome.wait)
		}
		var err error
		switch {
		case again:
			err = tx.Delivery.Create().SetEndpointID(e.ID).SetEvent(t.event.Number).SetAttempts(t.attempts+1).SetNextAt(next).
				OnConflictColumns(delivery.FieldEndpointID, delivery.FieldEvent).UpdateNewValues().Exec(ctx)
		case t.again:
			// Who wanted it again while it was on its way gets it again.
			_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.Event(t.event.Number), delivery.NextAtLTE(t.due.UTC())).Exec(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
