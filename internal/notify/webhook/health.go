package webhook

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/ent/attempt"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
)

// health is how an endpoint does.
type health struct {
	failures     int
	failingSince *time.Time
	notBefore    time.Time // zero for what it was
	disable      string    // why it is to be disabled, if so
}

// healthAfter is how it does after some more attempts.
func healthAfter(e *ent.Endpoint, failingSince *time.Time, done []*task, now time.Time) health {
	h := health{failures: e.Failures, failingSince: failingSince, notBefore: leftAloneUntil(done, now)}
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

// failingSince is since when an endpoint fails, without the time in which
// nothing was tried because all had been given up: one failure after a quiet
// month is not a month of failures.
func failingSince(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task) (*time.Time, error) {
	if e.FailingSince == nil || len(done) == 0 {
		return e.FailingSince, nil
	}
	trying, err := tx.Delivery.Query().Where(delivery.EndpointID(e.ID), delivery.AttemptsGT(0)).Exist(ctx)
	if err != nil || trying {
		return e.FailingSince, err
	}
	last, err := tx.Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.EventGT(0)).Order(ent.Desc(attempt.FieldAt)).First(ctx)
	if ent.IsNotFound(err) { // it was so long ago that it is forgotten
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	since := e.FailingSince.Add(max(done[0].outcome.at.Sub(last.At), 0)).UTC()
	return &since, nil
}

// write tells whether the endpoint is still there.
func (h health) write(ctx context.Context, tx *ent.Tx, e *ent.Endpoint) (found bool, err error) {
	update := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetFailures(h.failures)
	if h.failingSince != nil {
		update.SetFailingSince(*h.failingSince)
	} else {
		update.ClearFailingSince()
	}
	if !h.notBefore.IsZero() {
		update.SetNotBefore(h.notBefore)
	}
	n, err := update.Save(ctx)
	return n > 0, err
}
