package webhook

import (
	"context"
	"errors"
	"maps"
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
)

const (
	// roundSize is how many events are sent before their outcomes are recorded,
	// rounded up to a whole batch. After a crash, up to this many are sent again.
	roundSize = 200
	// pageSize is how many new events are read at once.
	pageSize = 50
	// probeAfter is the number of consecutive failures after which an endpoint
	// receives one event at a time, until one is delivered.
	probeAfter = 20
	// maxPending is how many requests to an endpoint may be in flight, unless it
	// receives batches.
	maxPending = 8
)

// round sends the due events of an endpoint, in order.
type round struct {
	*Webhooks
	endpoint *ent.Endpoint
	mayStart func() bool
	pending  chan struct{} // a semaphore for requests in flight
	sending  sync.WaitGroup
	stopped  atomic.Bool // by the receiver

	tasks    []*task
	position int // the endpoint's new position if all tasks get an outcome
}

// task is a request to send: an event, or a batch if the endpoint receives batches.
type task struct {
	message
	attempts int       // made before
	retry    bool      // it was attempted or held before
	due      time.Time // next_at of its Deliveries; zero if it has none
	outcome  outcome
	done     bool // outcome is set
	held     bool // not sent, because an earlier event is pending
}

// finished reports whether a task will not be sent again.
func (t *task) finished() bool {
	return t.done && (t.outcome.delivered() || t.attempts+1 > len(retries))
}

// round sends the due events of an endpoint and reports whether more may be due. It
// starts no request after mayStart returns false. When ctx ends, requests are
// canceled, and those without a response will be sent again.
func (w *Webhooks) round(ctx context.Context, mayStart func() bool, id int) (more bool, err error) {
	e, err := w.Store.Read.Endpoint.Query().Where(endpoint.ID(id)).WithAccount().Only(ctx)
	switch {
	case err != nil:
		return false, ent.MaskNotFound(err)
	case e.Edges.Account == nil: // deleted between the two queries
		return false, nil
	case e.State != endpoint.StateActive || !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks:
		return false, w.skip(ctx, e)
	case e.NotBefore != nil && w.now().Before(*e.NotBefore):
		return false, nil
	}
	r := &round{Webhooks: w, endpoint: e, mayStart: mayStart, pending: make(chan struct{}, maxPending), position: e.Position}
	if e.Batches { // they are large, and each has many events
		r.pending = make(chan struct{}, 1)
	}
	err = r.sendDue(ctx)
	r.sending.Wait()
	if len(r.tasks) == 0 && r.position == e.Position {
		return false, err
	}
	events := 0
	for _, t := range r.tasks {
		events += len(t.events)
	}
	return events >= roundSize, errors.Join(err, r.record(ctx))
}

// sendDue sends the retries first and then the new events. It reads events just
// before it sends them, to keep few in memory.
func (r *round) sendDue(ctx context.Context) error {
	room, probing := roundSize, r.endpoint.Failures >= probeAfter
	if probing {
		room = 1
	}
	due, err := r.Store.Read.Delivery.Query().
		Where(delivery.EndpointID(r.endpoint.ID), delivery.NextAtLTE(r.now().UTC())).Order(delivery.ByEvent()).All(ctx)
	if err != nil {
		return err
	}
	early := map[int]time.Time{} // due times of releases that sendNew sends, after the events before them
	for _, rows := range groupRetries(r.endpoint, due) {
		if room <= 0 {
			break
		}
		t, err := r.readRetry(ctx, rows)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if t.release && t.last() > r.endpoint.Position {
			early[t.last()] = t.due
			continue
		}
		if t.held, err = r.mustWait(ctx, t); err != nil {
			return err
		}
		if !t.held {
			room -= len(t.events)
		}
		if !r.send(ctx, t) {
			return nil
		}
	}
	if probing && room > 0 {
		// If any delivery is left, its retry is the next probe.
		left, err := r.Store.Read.Delivery.Query().
			Where(delivery.EndpointID(r.endpoint.ID), delivery.EventNotIn(slices.Collect(maps.Keys(early))...)).Exist(ctx)
		if err != nil || left {
			return err
		}
	}
	return r.sendNew(ctx, room, early)
}

// groupRetries groups the deliveries that are sent in one request: a batch has the
// same events at each attempt.
func groupRetries(e *ent.Endpoint, rows []*ent.Delivery) (groups [][]*ent.Delivery) {
	index := map[int]int{} // the place of each batch in groups
	for _, row := range rows {
		if i, found := index[row.Batch]; found {
			groups[i] = append(groups[i], row)
			continue
		}
		if e.Batches && row.Batch != 0 {
			index[row.Batch] = len(groups)
		}
		groups = append(groups, []*ent.Delivery{row})
	}
	return groups
}

// sendNew sends the events after the endpoint's position. It may exceed room to
// complete a batch: the content of a batch depends only on the journal, so that
// another server that takes over sends the same batch.
func (r *round) sendNew(ctx context.Context, room int, early map[int]time.Time) error {
	newest, err := journal.Newest(ctx, r.Store.Read.JournalEntry)
	if err != nil {
		return err
	}
	var queue []*item
	read, retried, more := r.endpoint.Position, r.tasks, true
	for room > 0 {
		for more && r.needsMore(queue) {
			var page []*item
			if page, more, err = r.readNew(ctx, read, room); err != nil {
				return err
			}
			for _, event := range page {
				read = event.number
				// After a replay, a new event may already be among the retries.
				if !slices.ContainsFunc(retried, func(t *task) bool { return slices.Contains(t.events, event.number) }) {
					queue = append(queue, event)
				}
			}
		}
		n := r.nextMessage(queue)
		if n == 0 {
			break
		}
		t := &task{message: newMessage(queue[:n], r.endpoint.Batches)}
		if t.held, err = r.mustWait(ctx, t); err != nil {
			return err
		}
		if t.held && n > 1 { // the release waits, but not the events before it
			n--
			t.message, t.held = newMessage(queue[:n], r.endpoint.Batches), false
		}
		t.due = early[t.last()]
		queue, room = queue[n:], room-n
		if !r.send(ctx, t) {
			return nil
		}
	}
	switch {
	case len(queue) > 0:
		r.position = queue[0].number - 1
	case more:
		r.position = read
	case read == r.endpoint.Position:
		// There are no more events for the endpoint. If a backup was restored, the
		// position moves back.
		r.position = newest
	default:
		r.position = max(read, newest)
	}
	return nil
}

func (r *round) readNew(ctx context.Context, after, room int) (page []*item, more bool, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	limit := pageSize
	if !r.endpoint.Batches {
		limit = min(limit, room)
	}
	filter := FilterOf(r.endpoint)
	events, more, err := journal.Page(ctx, r.Store.Read.JournalEntry,
		journal.Query{Types: r.endpoint.Types, Categories: filter.Categories, Tools: filter.Tools, Releases: true, After: after, Limit: limit})
	for _, event := range events {
		page = append(page, r.item(event))
	}
	return page, more, err
}

// readRetry reads the events of a retry. If the journal no longer has one, it
// deletes the delivery; the task is nil if none is left.
func (r *round) readRetry(ctx context.Context, rows []*ent.Delivery) (*task, error) {
	t := &task{retry: true}
	var numbers []int
	for _, row := range rows {
		numbers = append(numbers, row.Event)
		t.attempts = max(t.attempts, row.Attempts)
		if row.NextAt.After(t.due) {
			t.due = row.NextAt
		}
	}
	items, err := r.read(ctx, numbers)
	if err != nil {
		return nil, err
	}
	for _, event := range items {
		numbers = slices.DeleteFunc(numbers, func(number int) bool { return number == event.number })
	}
	if len(numbers) > 0 {
		_, err = r.Store.Write.Delivery.Delete().Where(delivery.EndpointID(r.endpoint.ID), delivery.EventIn(numbers...)).Exec(ctx)
	}
	if err != nil || len(items) == 0 {
		return nil, err
	}
	t.message = newMessage(items, r.endpoint.Batches)
	return t, nil
}

// mustWait reports whether a task contains catalog.published while an earlier event
// is pending. Receivers rely on catalog.published to know that a release is complete.
func (r *round) mustWait(ctx context.Context, t *task) (bool, error) {
	if !t.release {
		return false, nil
	}
	r.sending.Wait()
	finished := map[int]bool{}
	for _, earlier := range r.tasks {
		if earlier.events[0] > t.last() {
			continue
		}
		if !earlier.finished() {
			return true, nil
		}
		for _, number := range earlier.events {
			finished[number] = true
		}
	}
	var pending []int
	err := r.Store.Read.Delivery.Query().Where(delivery.EndpointID(r.endpoint.ID), delivery.EventLT(t.last())).
		Select(delivery.FieldEvent).Scan(ctx, &pending)
	return slices.ContainsFunc(pending, func(number int) bool { return !finished[number] && !slices.Contains(t.events, number) }), err
}

// send sends a task, unless it is held, and reports whether the round may continue.
// It returns when the receiver has responded or, if that takes long, once the request
// is written: events arrive in order, and slow receivers get several at once.
func (r *round) send(ctx context.Context, t *task) bool {
	r.tasks = append(r.tasks, t)
	if t.held {
		return true
	}
	r.pending <- struct{}{}
	if ctx.Err() != nil || r.stopped.Load() || !r.mayStart() {
		<-r.pending
		return false
	}
	sent, proceed := context.WithCancel(context.Background())
	r.sending.Go(func() {
		defer func() { <-r.pending }()
		defer proceed()
		t.outcome = r.post(ctx, r.endpoint, t.id, t.body, func() { time.AfterFunc(r.timing.prompt, proceed) })
		t.done = ctx.Err() == nil || t.outcome.status > 0
		t.body = nil
		if t.outcome.wait > 0 || t.outcome.gone() {
			r.stopped.Store(true)
		}
	})
	<-sent.Done()
	return true
}

// skip moves an endpoint that receives no events to the end of the journal and resets
// its failures, unless it was activated in the meantime.
func (w *Webhooks) skip(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		// Read this first: an endpoint that is activated now must receive later events.
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
