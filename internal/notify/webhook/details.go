package webhook

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"palmares/ent"
	"palmares/ent/attempt"
	"palmares/ent/delivery"
	"palmares/internal/core/problem"
)

// MaxAttempts is how many times an undeliverable event is sent.
var MaxAttempts = len(retries) + 1

// Details describes what an attempt sent and what happens next.
type Details struct {
	*ent.Attempt
	Headers         []Header // without the signature
	SignatureHeader string   // its name
	Payload         []byte   // nil if it is no longer stored
	Next            *time.Time
	Later           *ent.Attempt // the attempt that followed, or nil
}

// Details returns the details of an attempt of an endpoint.
func (w *Webhooks) Details(ctx context.Context, e *ent.Endpoint, id int) (*Details, error) {
	db := w.Store.Read
	found, err := db.Attempt.Query().Where(attempt.ID(id), attempt.EndpointID(e.ID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, problem.New(problem.NotFound, "This delivery attempt does not exist. Attempts are deleted after 30 days.")
	}
	if err != nil {
		return nil, err
	}
	d := &Details{Attempt: found, SignatureHeader: signatureHeader}
	messageID := MessageID(found)
	if found.Event == 0 {
		var test struct{ ID string }
		if json.Unmarshal([]byte(found.TestBody), &test) == nil {
			d.Payload, messageID = []byte(found.TestBody), test.ID
		}
	} else {
		if d.Payload, err = w.payload(ctx, found); err != nil {
			return nil, err
		}
		next, err := w.NextAttempts(ctx, e, []*ent.Attempt{found})
		if err != nil {
			return nil, err
		}
		d.Next = next[found.Event]
		d.Later, err = db.Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.AtGTE(found.At.UTC()), attempt.Event(found.Event), attempt.IDGT(found.ID)).
			Order(attempt.ByAt(), attempt.ByID()).First(ctx)
		if ent.MaskNotFound(err) != nil {
			return nil, err
		}
	}
	if messageID != "" {
		d.Headers = headers(messageID, found.At)
	}
	if d.Payload != nil {
		d.Headers = append([]Header{{"Content-Length", strconv.Itoa(len(d.Payload))}}, d.Headers...)
	}
	return d, nil
}

// payload returns the body that an attempt sent, or nil if the journal no longer
// has all of its events. Bodies are not stored, because the journal determines them.
func (w *Webhooks) payload(ctx context.Context, a *ent.Attempt) ([]byte, error) {
	numbers, batch := a.Events, len(a.Events) > 0
	if !batch {
		numbers = []int{a.Event}
	}
	items, err := w.read(ctx, numbers)
	if err != nil || len(items) != len(numbers) {
		return nil, err
	}
	return newMessage(items, batch).body, nil
}

// NextAttempts returns when the events of some attempts are sent again, by the
// number of the first event. Events that will not be sent again are absent.
func (w *Webhooks) NextAttempts(ctx context.Context, e *ent.Endpoint, attempts []*ent.Attempt) (map[int]*time.Time, error) {
	var events []int
	for _, a := range attempts {
		events = append(events, a.Event)
	}
	rows, err := w.Store.Read.Delivery.Query().Where(delivery.EndpointID(e.ID), delivery.EventIn(events...)).All(ctx)
	next := map[int]*time.Time{}
	for _, row := range rows {
		at := row.NextAt
		if e.NotBefore != nil && at.Before(*e.NotBefore) {
			at = *e.NotBefore
		}
		next[row.Event] = &at
	}
	return next, err
}
