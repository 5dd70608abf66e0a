package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/attempt"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/lang"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

// retries are the delays between a failed attempt and the next one.
var retries = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// maxWait limits Retry-After.
	maxWait = 24 * time.Hour
	// disableAfter is how long an endpoint may fail before it is disabled.
	disableAfter = 5 * 24 * time.Hour
)

// withJitter adds up to a tenth, so that retries spread out.
func withJitter(wait time.Duration) time.Duration {
	return wait + time.Duration(rand.Int64N(int64(wait)/10))
}

// retryAfter returns the wait that a receiver requested.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxWait)
	}
	return 0
}

// waitUntil returns the end of the longest wait that the receiver requested;
// zero if it requested none.
func waitUntil(done []*task, now time.Time) (until time.Time) {
	var longest time.Duration
	for _, t := range done {
		longest = max(longest, t.outcome.wait)
	}
	if longest > 0 {
		until = now.Add(withJitter(longest))
	}
	return until
}

// record stores the outcomes. Events whose outcome is not stored are sent again, so
// it retries for as long as an import may lock the database.
func (r *round) record(ctx context.Context) error {
	shutdown := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.timing.locked)
	defer cancel()
	defer context.AfterFunc(shutdown, func() { time.AfterFunc(r.timing.record, cancel) })()
	for logged := false; ; logged = true {
		err := r.recordOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !logged {
			r.Log.Warn("recording webhook attempts failed, will retry", "endpoint", r.endpoint.ID, "cause", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(r.timing.poll):
		}
	}
}

func (r *round) recordOnce(ctx context.Context) error {
	e, now := r.endpoint, r.now().UTC()
	done, held, position := r.done()
	return r.Store.Update(ctx, func(tx *ent.Tx) error {
		since, err := failingSince(ctx, tx, e, done)
		if err != nil {
			return err
		}
		failures, since, reason := healthAfter(e.Failures, since, done, now)
		notBefore := waitUntil(done, now)
		// This locks the endpoint first, in the same order as pausing it does.
		update := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetFailures(failures).SetNillableFailingSince(since)
		if since == nil {
			update.ClearFailingSince()
		}
		if !notBefore.IsZero() {
			update.SetNotBefore(notBefore)
		}
		for _, t := range done { // in order, so that the last one remains
			if t.outcome.delivered() {
				update.SetDeliveredAt(t.outcome.at.UTC())
			}
		}
		if found, err := update.Save(ctx); err != nil || found == 0 {
			return err
		}
		// A replay that moved the position back in the meantime takes precedence.
		if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.Position(e.Position)).SetPosition(position).Exec(ctx); err != nil {
			return err
		}
		err = tx.Attempt.MapCreateBulk(done, func(create *ent.AttemptCreate, i int) {
			t := done[i]
			t.outcome.row(create, e.ID, t.events[0], t.kind, t.attempts+1)
			if t.kind == journal.EventsBatch {
				create.SetEvents(t.events)
			}
		}).Exec(ctx)
		if err != nil {
			return err
		}
		if reason == "" {
			return planRetries(ctx, tx, e, done, held, now, notBefore)
		}
		return r.disable(ctx, tx, reason)
	})
}

// done returns the tasks that have an outcome, the tasks to hold, and the endpoint's
// new position, which is before the first new event without an outcome.
func (r *round) done() (done, held []*task, position int) {
	position = r.endpoint.Position
	complete := true
	for _, t := range r.tasks {
		complete = complete && (t.done || t.held || t.retry)
		switch {
		case t.done:
			done = append(done, t)
		case t.held && (complete || t.retry): // otherwise it is still new
			held = append(held, t)
		}
		if complete && !t.retry {
			position = t.last()
		}
	}
	if complete && r.position != r.endpoint.Position { // otherwise reading failed after these tasks
		position = r.position
	}
	return done, held, position
}

func (o outcome) row(create *ent.AttemptCreate, endpoint, event int, kind string, number int) *ent.AttemptCreate {
	return create.SetEndpointID(endpoint).SetEvent(event).SetType(kind).SetNumber(number).SetAt(o.at.UTC()).
		SetStatus(o.status).SetTookMs(int(o.took / time.Millisecond)).SetResponse(o.response).SetDelivered(o.delivered())
}

// planRetries stores when each failed event is sent again, not before notBefore, and
// deletes the deliveries of delivered events.
func planRetries(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done, held []*task, now, notBefore time.Time) error {
	changed := len(held) > 0
	for _, t := range held {
		if err := plan(ctx, tx, e, t, t.attempts, now, true); err != nil {
			return err
		}
	}
	for _, t := range done {
		var err error
		if !t.finished() {
			next := now.Add(withJitter(retries[t.attempts]))
			if next.Before(notBefore) {
				next = notBefore
			}
			err = plan(ctx, tx, e, t, t.attempts+1, next, false)
			changed = true
		} else if !t.due.IsZero() {
			// A later next_at means that the event was replayed while it was being sent.
			_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.EventIn(t.events...), delivery.NextAtLTE(t.due.UTC())).Exec(ctx)
			changed = true
		}
		if err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return planHeld(ctx, tx, e, now)
}

// plan stores when the events of a task are sent in one request.
func plan(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, t *task, attempts int, next time.Time, held bool) error {
	return tx.Delivery.MapCreateBulk(t.events, func(create *ent.DeliveryCreate, i int) {
		create.SetEndpointID(e.ID).SetEvent(t.events[i]).SetBatch(t.events[0]).SetAttempts(attempts).SetNextAt(next).SetHeld(held)
	}).OnConflict(entsql.ConflictColumns(delivery.FieldEndpointID, delivery.FieldEvent), entsql.ResolveWithNewValues()).Exec(ctx)
}

// planHeld makes held events due at the same time as the last event that they wait
// for, or now if there is none.
func planHeld(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, now time.Time) error {
	if exist, err := tx.Delivery.Query().Where(delivery.EndpointID(e.ID), delivery.Held(true)).Exist(ctx); err != nil || !exist {
		return err
	}
	rows, err := tx.Delivery.Query().Where(delivery.EndpointID(e.ID)).Order(delivery.ByEvent()).All(ctx)
	if err != nil {
		return err
	}
	for _, group := range groupRetries(e, rows) {
		last := group[len(group)-1]
		if !last.Held {
			continue
		}
		next := now
		for _, row := range rows {
			if row.Event < last.Event && !slices.Contains(group, row) && row.NextAt.After(next) {
				next = row.NextAt
			}
		}
		var events []int
		for _, row := range group {
			events = append(events, row.Event)
			row.NextAt = next // for the releases after this one
		}
		if err := tx.Delivery.Update().Where(delivery.EndpointID(e.ID), delivery.EventIn(events...)).SetNextAt(next.UTC()).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// disable disables the endpoint, unless it was paused or disabled in the meantime, and
// notifies its owner.
func (r *round) disable(ctx context.Context, tx *ent.Tx, reason lang.Message) error {
	e, owner := r.endpoint, r.endpoint.Edges.Account
	if _, err := tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx); err != nil {
		return err
	}
	disabled, err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.StateEQ(endpoint.StateActive)).
		SetState(endpoint.StateDisabled).SetDisabledReason(string(reason)).ClearNotBefore().Save(ctx)
	if err != nil || disabled == 0 {
		return err
	}
	l := lang.Language(owner.Language)
	page := fmt.Sprintf("%s%s/%d", r.PublicURL, l.Path("/account/webhooks"), e.ID)
	return outbox.Add(ctx, tx, aboutEndpoint(e), mail.WebhookDisabled(l, owner.Email, r.ServiceName, e.URL, l.Text(reason), page))
}

// aboutEndpoint is what the email about a disabled endpoint is about.
func aboutEndpoint(e *ent.Endpoint) string { return fmt.Sprintf("endpoint %d", e.ID) }

// healthAfter returns the number of consecutive failures and when they started, and
// the reason to disable the endpoint, if there is one.
func healthAfter(failures int, since *time.Time, done []*task, now time.Time) (_ int, _ *time.Time, disable lang.Message) {
	for _, t := range done {
		if failures++; t.outcome.delivered() {
			failures, since = 0, nil
		} else if since == nil {
			since = new(t.outcome.at.UTC())
		}
		if t.outcome.gone() {
			disable = "the receiver responded with status 410 (Gone)"
		}
	}
	if disable == "" && since != nil && now.Sub(*since) >= disableAfter {
		disable = "every delivery failed for 5 days"
	}
	return failures, since, disable
}

// failingSince returns when an endpoint started to fail, excluding time without
// retries: one failure after a quiet month is not a month of failures.
func failingSince(ctx context.Context, tx *ent.Tx, e *ent.Endpoint, done []*task) (*time.Time, error) {
	if e.FailingSince == nil || len(done) == 0 {
		return e.FailingSince, nil
	}
	retrying, err := tx.Delivery.Query().Where(delivery.EndpointID(e.ID), delivery.AttemptsGT(0)).Exist(ctx)
	if err != nil || retrying {
		return e.FailingSince, err
	}
	last, err := tx.Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.EventGT(0)).Order(ent.Desc(attempt.FieldAt)).First(ctx)
	if err != nil { // no attempt is left if the last one is older than attemptRetention
		return nil, ent.MaskNotFound(err)
	}
	return new(e.FailingSince.Add(max(done[0].outcome.at.Sub(last.At), 0)).UTC()), nil
}
