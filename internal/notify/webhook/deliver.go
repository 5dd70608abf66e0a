package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
)

const (
	// roundSize is how many events are sent before their outcomes are recorded.
	// After a crash, up to this many are sent again.
	roundSize = 200
	// pageSize is how many new events are read at once.
	pageSize = 50
	// probeAfter is the number of failures in a row after which an endpoint gets
	// one event at a time, until one is delivered.
	probeAfter = 20
	// maxPending is how many responses of an endpoint may be pending at once.
	maxPending = 8
	// maxBody is the size limit that the specification recommends.
	maxBody = 20_000
)

// round is one batch of events that are sent to an endpoint, in order.
type round struct {
	*Webhooks
	endpoint *ent.Endpoint
	mayStart func() bool
	pending  chan struct{} // has room for maxPending requests
	sending  sync.WaitGroup
	stopped  atomic.Bool // by the receiver

	tasks    []*task
	position int // the endpoint's new position if all tasks get an outcome
}

// task is an event to send.
type task struct {
	event    int // number in the journal
	kind     string
	body     []byte // nil once it is sent, to save memory
	attempts int    // made before
	retry    bool   // the event has a Delivery
	due      time.Time
	outcome  outcome
	done     bool // outcome is set
}

// round sends what is due to an endpoint and reports whether more may be due.
// It starts no request after mayStart returns false. When ctx ends, requests
// are canceled, and those without a response will be sent again.
func (w *Webhooks) round(ctx context.Context, mayStart func() bool, id int) (more bool, err error) {
	e, err := w.Store.Current().Endpoint.Query().Where(endpoint.ID(id)).WithAccount().Only(ctx)
	switch {
	case err != nil:
		return false, ent.MaskNotFound(err)
	case e.Edges.Account == nil: // deleted between the two queries
		return false, nil
	case e.NotifyOwner:
		return false, w.notifyOwner(ctx, e)
	case e.State != endpoint.StateActive || !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks:
		return false, w.skip(ctx, e)
	case e.NotBefore != nil && w.now().Before(*e.NotBefore):
		return false, nil
	}
	r := &round{Webhooks: w, endpoint: e, mayStart: mayStart, pending: make(chan struct{}, maxPending), position: e.Position}
	err = r.sendDue(ctx)
	r.sending.Wait()
	if len(r.tasks) == 0 && r.position == e.Position {
		return false, err
	}
	return len(r.tasks) >= roundSize, errors.Join(err, r.record(ctx))
}

// sendDue sends first the retries and then the new events. It reads events just
// before it sends them, to hold few in memory.
func (r *round) sendDue(ctx context.Context) error {
	room, probing := roundSize, r.endpoint.Failures >= probeAfter
	if probing {
		room = 1
	}
	retries, err := r.Store.Current().Delivery.Query().
		Where(delivery.EndpointID(r.endpoint.ID), delivery.NextAtLTE(r.now().UTC())).Order(delivery.ByEvent()).Limit(room).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range retries {
		t := &task{event: row.Event, attempts: row.Attempts, retry: true, due: row.NextAt}
		found, err := r.readRetry(ctx, t)
		if err != nil {
			return err
		}
		if found && !r.send(ctx, t) {
			return nil
		}
	}
	room -= len(retries)
	if probing && room > 0 {
		// If any delivery is left, its retry is the next probe.
		left, err := r.Store.Current().Delivery.Query().Where(delivery.EndpointID(r.endpoint.ID)).Exist(ctx)
		if err != nil || left {
			return err
		}
	}
	return r.sendNew(ctx, room)
}

// sendNew sends the events after the endpoint's position.
func (r *round) sendNew(ctx context.Context, room int) error {
	newest, err := journal.Newest(ctx, r.Store.Current().JournalEntry)
	if err != nil {
		return err
	}
	retries := r.tasks
	for more := true; more && room > 0; {
		var page []*task
		if page, more, err = r.readNew(ctx, min(room, pageSize)); err != nil {
			return err
		}
		room -= len(page)
		for _, t := range page {
			r.position = t.event
			// After a replay, a new event may already be among the retries.
			sent := slices.ContainsFunc(retries, func(other *task) bool { return other.event == t.event })
			if !sent && !r.send(ctx, t) {
				return nil
			}
		}
		// Without more events, the position skips those that the endpoint does not
		// want. It can also go back, after a backup of the journal was restored.
		if !more && (len(page) == 0 || r.position < newest) {
			r.position = newest
		}
	}
	return nil
}

func (r *round) readNew(ctx context.Context, limit int) (page []*task, more bool, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	events, more, err := journal.Page(ctx, r.Store.Current().JournalEntry,
		journal.Query{Types: r.endpoint.Types, Categories: r.endpoint.Categories, Releases: true, After: r.position, Limit: limit})
	for _, event := range events {
		page = append(page, &task{event: event.Number, kind: event.Type, body: r.bodyOf(event)})
	}
	return page, more, err
}

// readRetry reads the event of a retry. If the journal no longer has it, it
// deletes the delivery.
func (r *round) readRetry(ctx context.Context, t *task) (found bool, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	events, err := journal.ByNumbers(ctx, r.Store.Current().JournalEntry, []int{t.event})
	if err != nil {
		return false, err
	}
	if len(events) == 0 {
		_, err = r.Store.Write.Delivery.Delete().Where(delivery.EndpointID(r.endpoint.ID), delivery.Event(t.event)).Exec(ctx)
		return false, err
	}
	t.kind, t.body = events[0].Type, r.bodyOf(events[0])
	return true, nil
}

// send starts to send a task and reports whether it did. It returns when the
// receiver has responded or, if that takes long, when the request is written:
// events arrive in order, and slow receivers get several at once.
func (r *round) send(ctx context.Context, t *task) bool {
	r.tasks = append(r.tasks, t)
	r.pending <- struct{}{}
	if ctx.Err() != nil || r.stopped.Load() || !r.mayStart() {
		<-r.pending
		return false
	}
	sent, proceed := context.WithCancel(context.Background())
	r.sending.Go(func() {
		defer func() { <-r.pending }()
		defer proceed()
		t.outcome = r.post(ctx, r.endpoint, eventID(t.event), t.body, func() { time.AfterFunc(r.timing.prompt, proceed) })
		t.done = ctx.Err() == nil || t.outcome.status > 0
		t.body = nil
		if t.outcome.wait > 0 || t.outcome.gone() {
			r.stopped.Store(true)
		}
	})
	<-sent.Done()
	return true
}

// bodyOf returns the request body of an event. If it would be too long, the
// body has a link to the event instead.
func (w *Webhooks) bodyOf(event *journal.Event) []byte {
	body := event.JSON()
	if len(body) <= maxBody {
		return body
	}
	return event.JSONWith(struct {
		TooLong bool   `json:"too_long"`
		Bytes   int    `json:"bytes"`
		Fields  int    `json:"fields_changed"`
		Link    string `json:"link"`
	}{true, len(body), len(event.Fields), w.linkTo(event)})
}

// linkTo returns a URL that queries a single event.
func (w *Webhooks) linkTo(event *journal.Event) string {
	variables := `{"after":null}`
	if event.Number > 1 {
		variables = `{"after":"` + eventID(event.Number-1) + `"}`
	}
	query := `query($after:String){changes(first:1,after:$after){nodes{id type slug release fields before after}}}`
	return w.PublicURL + "/graphql?" + url.Values{"query": {query}, "variables": {variables}}.Encode()
}

func eventID(number int) string { return (&journal.Event{Number: number}).ID() }

// skip moves an endpoint that gets no events to the end of the journal and
// resets its failures, unless it was activated in the meantime.
func (w *Webhooks) skip(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		// Read this first: if the endpoint is activated now, later events are its own.
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

// notifyOwner sends the email about a disabled endpoint. It is pending in the
// database, so that it survives restarts and outages of the mail server.
func (w *Webhooks) notifyOwner(ctx context.Context, e *ent.Endpoint) error {
	page := fmt.Sprintf("%s/account/webhooks/%d", w.PublicURL, e.ID)
	err := w.Mail.Send(ctx, mail.WebhookDisabled(e.Edges.Account.Email, w.ServiceName, e.URL, e.DisabledReason, page))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	retry := err != nil && problem.Of(err).Code == problem.Unavailable
	update := w.Store.Write.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.NotifyOwner(true)).SetNotifyOwner(retry)
	if retry {
		w.Log.Warn("sending a webhook email failed, will retry", "endpoint", e.ID, "reason", problem.Of(err).Message)
		update.SetNotBefore(w.now().UTC().Add(w.timing.email))
	} else if err != nil {
		w.Mail.Failed.Add(1)
		w.Log.Error("sending a webhook email failed", "endpoint", e.ID, "reason", problem.Of(err).Message)
	}
	return update.Exec(context.WithoutCancel(ctx))
}
