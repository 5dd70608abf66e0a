package webhook

import (
	"context"
	"slices"

	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/internal/catalog/journal"
)

// pageSize is how many bodies are made before they are needed.
const pageSize = 50

// batch is what a round sends, in order.
type batch struct {
	tasks    []*task
	position int // of the endpoint, once all of them have an outcome
}

// sendBatch sends what is due: first what is tried again, then what is new. It
// is read as it is sent, so that little of it is held.
func (w *Webhooks) sendBatch(ctx context.Context, out *sender, b *batch) error {
	e, room := out.endpoint, roundSize
	if e.Failures >= tired {
		room = 1
	}
	again, err := w.dueAgain(ctx, e, room)
	if err != nil {
		return err
	}
	for _, t := range again {
		there, err := w.prepare(ctx, e, t)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		b.tasks = append(b.tasks, t)
		if !out.send(ctx, t) {
			return nil
		}
	}
	if room -= len(again); room == 0 {
		return nil
	}
	if e.Failures >= tired {
		waiting, err := w.Store.Current().Delivery.Query().Where(delivery.EndpointID(e.ID)).Exist(ctx)
		if err != nil || waiting { // the next that is due is the next trial
			return err
		}
	}
	return w.sendNew(ctx, out, b, room)
}

// sendNew sends what comes after the endpoint's position.
func (w *Webhooks) sendNew(ctx context.Context, out *sender, b *batch, room int) error {
	newest, err := journal.Newest(ctx, w.Store.Current().JournalEntry)
	if err != nil {
		return err
	}
	again := b.tasks
	for more := true; more && room > 0; {
		var page []*task
		if page, more, err = w.newPage(ctx, out.endpoint, b.position, min(room, pageSize)); err != nil {
			return err
		}
		switch {
		case more:
			b.position = page[len(page)-1].number
		case len(page) > 0 && page[len(page)-1].number > newest:
			b.position = page[len(page)-1].number
		default: // past what nobody wants; a restored backup may have fewer than there were
			b.position = newest
		}
		room -= len(page)
		page = slices.DeleteFunc(page, func(t *task) bool { return has(again, t.number) })
		b.tasks = append(b.tasks, page...)
		for _, t := range page {
			if !out.send(ctx, t) {
				return nil
			}
		}
	}
	return nil
}

// has tells whether an event is being tried again already, as one may be that
// came after a position that was moved back.
func has(again []*task, number int) bool {
	return slices.ContainsFunc(again, func(t *task) bool { return t.number == number })
}

// newPage reads some of what is new, and tells whether there is more.
func (w *Webhooks) newPage(ctx context.Context, e *ent.Endpoint, after, most int) (page []*task, more bool, err error) {
	w.reading.Lock()
	defer w.reading.Unlock()
	events, more, err := journal.Page(ctx, w.Store.Current().JournalEntry,
		journal.Query{Types: e.Types, Categories: e.Categories, Releases: true, After: after, Limit: most})
	for _, event := range events {
		page = append(page, &task{number: event.Number, kind: event.Type, body: w.bodyOf(event)})
	}
	return page, more, err
}

// dueAgain are the deliveries whose time has come.
func (w *Webhooks) dueAgain(ctx context.Context, e *ent.Endpoint, most int) (tasks []*task, err error) {
	rows, err := w.Store.Current().Delivery.Query().
		Where(delivery.EndpointID(e.ID), delivery.NextAtLTE(w.now().UTC())).Order(delivery.ByEvent()).Limit(most).All(ctx)
	for _, row := range rows {
		tasks = append(tasks, &task{number: row.Event, attempts: row.Attempts, again: true, due: row.NextAt})
	}
	return tasks, err
}

// prepare reads the event of a task that is tried again. A delivery whose event
// is not in the journal ends: it would be waited for without end.
func (w *Webhooks) prepare(ctx context.Context, e *ent.Endpoint, t *task) (there bool, err error) {
	if there, err = w.read(ctx, t); err != nil || there {
		return there, err
	}
	_, err = w.Store.Write.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.Event(t.number)).Exec(ctx)
	return false, err
}

func (w *Webhooks) read(ctx context.Context, t *task) (there bool, err error) {
	w.reading.Lock()
	defer w.reading.Unlock()
	events, err := journal.Some(ctx, w.Store.Current().JournalEntry, []int{t.number})
	if err != nil || len(events) == 0 {
		return false, err
	}
	t.kind, t.body = events[0].Type, w.bodyOf(events[0])
	return true, nil
}
