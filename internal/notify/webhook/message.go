package webhook

import (
	"context"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

const (
	// maxBody is the limit that the Standard Webhooks specification recommends. For
	// longer events, a link is sent.
	maxBody = 20_000
	// maxBatchBody limits the body of a batch.
	maxBatchBody = 256 << 10
	// batchEnvelope is an upper bound of the size of a batch without its events.
	batchEnvelope = 200
)

// item is an event in the form in which it is sent.
type item struct {
	number  int // in the journal
	kind    string
	release int
	at      time.Time
	body    jsontext.Value
}

// message is the content of a request.
type message struct {
	id, kind string
	events   []int  // numbers in the journal, in order
	release  bool   // the last event is catalog.published
	body     []byte // nil once it is sent, to save memory
}

func (m *message) last() int { return m.events[len(m.events)-1] }

// item returns an event in the form in which it is sent. If its body would be too
// long, the body contains a link to the event instead.
func (w *Webhooks) item(event *journal.Event) *item {
	i := &item{event.Number, event.Type, event.Release, event.At, event.JSON()}
	if length := len(i.body); length > maxBody {
		i.body = event.JSONWith(struct {
			TooLong bool   `json:"too_long"`
			Bytes   int    `json:"bytes"`
			Fields  int    `json:"fields_changed"`
			Link    string `json:"link"`
		}{true, length, len(event.Fields), w.linkTo(event)})
	}
	return i
}

// read returns the events that the journal still has.
func (w *Webhooks) read(ctx context.Context, numbers []int) (items []*item, err error) {
	w.reading.Lock()
	defer w.reading.Unlock()
	events, err := journal.ByNumbers(ctx, w.Store.Read.JournalEntry, numbers)
	for _, event := range events {
		items = append(items, w.item(event))
	}
	return items, err
}

// linkTo returns a URL that fetches an event from the GraphQL API.
func (w *Webhooks) linkTo(event *journal.Event) string {
	variables := `{"after":null}`
	if event.Number > 1 {
		variables = `{"after":"` + journal.ID(event.Number-1) + `"}`
	}
	query := `query($after:String){changes(first:1,after:$after){nodes{id type slug release fields before after}}}`
	return w.PublicURL + "/graphql?" + url.Values{"query": {query}, "variables": {variables}}.Encode()
}

// nextMessage returns how many events of a queue the next message contains.
func (r *round) nextMessage(queue []*item) (n int) {
	if !r.endpoint.Batches {
		return min(len(queue), 1)
	}
	bytes := batchEnvelope
	for _, event := range queue {
		bytes += len(event.body) + len(",")
		if n > 0 && bytes > maxBatchBody || n == journal.MaxBatch || event.release != queue[0].release {
			break
		}
		n++
	}
	return n
}

// needsMore reports whether the next message may contain events that are not in the
// queue yet.
func (r *round) needsMore(queue []*item) bool {
	n := r.nextMessage(queue)
	return n == 0 || r.endpoint.Batches && n == len(queue) && n < journal.MaxBatch && queue[n-1].kind != journal.EventCatalogPublished
}

// newMessage returns a message with events of one release: a batch or a single event.
func newMessage(events []*item, batch bool) message {
	last := events[len(events)-1]
	m := message{release: last.kind == journal.EventCatalogPublished}
	var bodies []jsontext.Value
	for _, event := range events {
		m.events = append(m.events, event.number)
		bodies = append(bodies, event.body)
	}
	if batch {
		m.id, m.kind = journal.BatchID(m.events), journal.EventsBatch
		m.body = journal.BatchJSON(m.id, last.release, last.at, bodies)
	} else {
		m.id, m.kind, m.body = journal.ID(last.number), last.kind, last.body
	}
	return m
}

// MessageID returns the webhook-id of an attempt; empty for a test event.
func MessageID(a *ent.Attempt) string {
	switch {
	case a.Event == 0:
		return ""
	case len(a.Events) > 0:
		return journal.BatchID(a.Events)
	}
	return journal.ID(a.Event)
}
