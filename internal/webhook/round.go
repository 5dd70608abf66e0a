package webhook

import (
	"context"
	"slices"
	"sync"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/internal/journal"
)

const (
	// roundSize is how many events are sent before what came of them is
	// written down: so many may be sent again after a crash.
	roundSize = 200
	// atOnce is how many answers of one endpoint are waited for together.
	atOnce = 8
	// tired is after how many failures in a row an endpoint is only tried,
	// one event at a time, until one arrives.
	tired = 20
)

// task is an event to send to an endpoint.
type task struct {
	event    *journal.Event
	attempts int       // made before
	again    bool      // it has a delivery
	due      time.Time // since when, if so
	outcome  outcome
	done     bool // there is an outcome
}

// round sends what is due to an endpoint, once, and tells whether there may be
// more. When beginning ends, nothing more is begun; when ctx ends, what is on
// its way is cut off.
func (w *Webhooks) round(ctx, beginning context.Context, id int) (more bool, err error) {
	e, err := w.Store.Current().Endpoint.Query().Where(endpoint.ID(id)).WithAccount().Only(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if e.State != endpoint.StateActive || !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks {
		return false, w.skip(ctx, e)
	}
	tasks, position, err := w.gather(ctx, e)
	if err != nil || len(tasks) == 0 && position == e.Position {
		return false, err
	}
	w.sendAll(ctx, beginning, e, tasks)
	return len(tasks) >= roundSize, w.record(context.WithoutCancel(ctx), e, tasks, position)
}

// skip passes over what an endpoint that sends nothing does not get, so that
// nothing piles up. How it did before is no matter when it sends again.
func (w *Webhooks) skip(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		err = tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetPosition(newest).SetFailures(0).ClearFailingSince().Exec(ctx)
		if err != nil {
			return err
		}
		_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx)
		return err
	})
}

// gather is what is due: first what is tried again, then what is new.
func (w *Webhooks) gather(ctx context.Context, e *ent.Endpoint) (tasks []*task, position int, err error) {
	room := roundSize
	if e.Failures >= tired {
		room = 1
	}
	if tasks, err = w.dueAgain(ctx, e, room); err != nil {
		return nil, 0, err
	}
	if room -= len(tasks); room == 0 {
		return tasks, e.Position, nil
	}
	if e.Failures >= tired {
		waiting, err := w.Store.Current().Delivery.Query().Where(delivery.EndpointID(e.ID)).Exist(ctx)
		if err != nil || waiting { // the next that is due is the next trial
			return nil, e.Position, err
		}
	}
	entries := w.Store.Current().JournalEntry
	newest, err := journal.Newest(ctx, entries)
	if err != nil {
		return nil, 0, err
	}
	events, err := journal.Read(ctx, entries, journal.Query{Types: e.Types, Categories: e.Categories, Releases: true, After: e.Position, Limit: room})
	if err != nil {
		return nil, 0, err
	}
	position = newest // past what nobody wants; a restored backup may have fewer than there were
	if len(events) > 0 && (len(events) == room || events[len(events)-1].Number > newest) {
		position = events[len(events)-1].Number
	}
	return append(tasks, others(events, tasks)...), position, nil
}

// others are the events that are not being tried again already, as those may be
// that came after a position that was moved back.
func others(events []*journal.Event, again []*task) (tasks []*task) {
	for _, event := range events {
		if !slices.ContainsFunc(again, func(t *task) bool { return t.event.Number == event.Number }) {
			tasks = append(tasks, &task{event: event})
		}
	}
	return tasks
}

// dueAgain are the deliveries whose time has come.
func (w *Webhooks) dueAgain(ctx context.Context, e *ent.Endpoint, most int) ([]*task, error) {
	rows, err := w.Store.Current().Delivery.Query().
		Where(delivery.EndpointID(e.ID), delivery.NextAtLTE(w.now().UTC())).Order(delivery.ByEvent()).Limit(most).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	byEvent := map[int]*ent.Delivery{}
	var numbers []int
	for _, row := range rows {
		byEvent[row.Event] = row
		numbers = append(numbers, row.Event)
	}
	events, err := journal.Some(ctx, w.Store.Current().JournalEntry, numbers)
	if err != nil {
		return nil, err
	}
	if len(events) < len(rows) {
		if err := w.forgetOthers(ctx, e, numbers, events); err != nil {
			return nil, err
		}
	}
	var tasks []*task
	for _, event := range events {
		row := byEvent[event.Number]
		tasks = append(tasks, &task{event: event, attempts: row.Attempts, again: true, due: row.NextAt})
	}
	return tasks, nil
}

// forgetOthers ends deliveries whose events are not in the journal: they would
// be waited for without end.
func (w *Webhooks) forgetOthers(ctx context.Context, e *ent.Endpoint, numbers []int, there []*journal.Event) error {
	for _, event := range there {
		numbers = slices.DeleteFunc(numbers, func(number int) bool { return number == event.Number })
	}
	_, err := w.Store.Write.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.EventIn(numbers...)).Exec(ctx)
	return err
}

// sendAll sends in order: the next one is begun when the last one is answered
// or, where that takes long, on its way; and no more than a few answers are
// waited for. What was not begun, or was cut off before an answer, has no
// outcome.
func (w *Webhooks) sendAll(ctx, beginning context.Context, e *ent.Endpoint, tasks []*task) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	places := make(chan struct{}, atOnce)
	for _, t := range tasks {
		select {
		case places <- struct{}{}:
		case <-beginning.Done():
		}
		if beginning.Err() != nil {
			return
		}
		onItsWay := make(chan struct{})
		waiting.Go(func() {
			defer func() { <-places }()
			var once sync.Once
			begun := func() { once.Do(func() { close(onItsWay) }) }
			defer begun()
			t.outcome = w.send(ctx, e, t.event.ID(), w.bodyOf(t.event), func() { time.AfterFunc(w.times.prompt, begun) })
			t.done = ctx.Err() == nil || t.outcome.status > 0
		})
		<-onItsWay
	}
}

// row is an attempt as it is kept.
func (o outcome) row(create *ent.AttemptCreate, endpoint, event int, kind string, number int) *ent.AttemptCreate {
	return create.SetEndpointID(endpoint).SetEvent(event).SetType(kind).SetNumber(number).SetAt(o.at.UTC()).
		SetStatus(o.status).SetTookMs(int(o.took / time.Millisecond)).SetAnswer(o.answer).SetDelivered(o.delivered)
}
