package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/notify/webhook"
)

// retries is the documented schedule, as far as an hour reaches.
var retries = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

const (
	retryAfter = 30 * time.Second // that receivers request
	jitter     = 1.1
	probeAfter = 20 // failures in a row
)

type webhookWorld struct {
	*world
	store     *store.Store
	servers   []*webhookServer
	receivers []*receiver
	started   int
	releases  int

	mu       sync.Mutex     // for what follows, and the receivers
	events   map[string]int // numbers by ID
	released map[int]bool   // numbers of catalog.published
}

type webhookServer struct {
	*machine
	world   *webhookWorld
	stopped chan struct{}
}

// receiver is an endpoint and what arrived there.
type receiver struct {
	endpoint *ent.Endpoint
	host     string
	mode     mode
	busy     map[*webhookServer]int // requests in flight
	sent     []*sending
	bodies   map[string]string // by ID of the message
	done     map[int]*sending  // by number of the event: the first that was accepted
	newest   int               // number of the newest event that arrived, except catalog.published
}

// sending is a request that arrived.
type sending struct {
	server *webhookServer
	id     string
	events []int
	status int // 0 without a response
	ended  bool
}

type mode string

const (
	works    mode = "works"
	fails    mode = "fails"
	hangs    mode = "hangs"
	postpone mode = "requests to wait"
	resets   mode = "closes connections"
	slow     mode = "is slow"
	flaky    mode = "rejects some events"
)

var modes = []mode{works, works, fails, hangs, postpone, resets, slow, flaky, flaky}

// simulateWebhooks checks that one server at a time sends to an endpoint, that
// events arrive in order, with one ID and content, that no event is lost, that what a
// receiver accepted is not sent again by a server that still runs, and that retries
// follow their schedule.
func simulateWebhooks(base *world) {
	w := &webhookWorld{world: base, store: base.openStore(), events: map[string]int{}, released: map[int]bool{}}
	owner, err := auth.NewAccounts(w.store).Create(context.Background(), "pro@example.com", auth.Pro)
	w.check(err)
	endpoints := webhook.New(webhook.Config{Store: w.store, Log: discard})
	for i := range 1 + w.IntN(3) {
		host := fmt.Sprintf("receiver-%d.example", i)
		added, err := endpoints.Add(context.Background(), owner, webhook.NewEndpoint{URL: "https://" + host + "/", Batches: w.oneIn(2)})
		w.check(err)
		found, err := endpoints.Find(context.Background(), nil, added.ID)
		w.check(err)
		w.receivers = append(w.receivers, &receiver{endpoint: found, host: host, mode: works,
			busy: map[*webhookServer]int{}, bodies: map[string]string{}, done: map[int]*sending{}})
	}
	w.begin()
	for w.left() > time.Minute {
		// Servers run for some seconds at a time, so that an hour takes milliseconds.
		w.phase()
		time.Sleep(w.pause())
	}
	w.finish()
}

// pause returns the time to the next phase, which often starts when retries are due.
func (w *webhookWorld) pause() time.Duration {
	pause := 10*time.Minute + w.upTo(20*time.Minute)
	if w.oneIn(2) {
		pause = time.Duration(float64(retries[w.IntN(3)])*jitter) - w.upTo(4*time.Second)
	}
	return min(max(pause, 0), w.left())
}

func (w *webhookWorld) phase() {
	if w.oneIn(2) || w.releases == 0 {
		w.publish()
	}
	for range 1 + w.IntN(2) {
		w.start()
	}
	for range 2 + w.IntN(3) {
		w.change()
		time.Sleep(w.upTo(4 * time.Second))
	}
	for len(w.servers) > 0 {
		w.stop(0, w.oneIn(2))
	}
}

// change changes one thing.
func (w *webhookWorld) change() {
	switch w.IntN(8) {
	case 0:
		w.publish()
	case 1:
		// Shorter than a lease, so that it can still be renewed.
		if len(w.servers) > 0 {
			s := w.servers[w.IntN(len(w.servers))]
			length := w.upTo(2 * time.Second)
			w.planned("statements of %s fail for %s", s.name, length)
			w.fail(length, s)
		}
	case 2:
		length := w.upTo(8 * time.Second)
		w.planned("all statements fail for %s", length)
		w.fail(length, w.servers...)
	case 3:
		if len(w.servers) > 0 {
			w.stop(w.IntN(len(w.servers)), w.oneIn(2))
		}
	case 4:
		if len(w.servers) < 2 {
			w.start()
		}
	default:
		r := w.receivers[w.IntN(len(w.receivers))]
		mode := modes[w.IntN(len(modes))]
		w.planned("%s %s", r.host, mode)
		w.mu.Lock()
		r.mode = mode
		w.mu.Unlock()
	}
}

func (w *webhookWorld) fail(length time.Duration, servers ...*webhookServer) {
	for _, s := range servers {
		s.storeDown.Store(true)
	}
	time.Sleep(length)
	for _, s := range servers {
		s.storeDown.Store(false)
	}
}

func (w *webhookWorld) start() {
	w.started++
	s := &webhookServer{machine: newMachine(fmt.Sprintf("server %d", w.started)), world: w, stopped: make(chan struct{})}
	w.planned("%s starts", s.name)
	service := webhook.New(webhook.Config{Store: w.store, Log: discard, Transport: s})
	go func() {
		defer close(s.stopped)
		service.Run(s)
	}()
	w.servers = append(w.servers, s)
}

func (w *webhookWorld) stop(i int, kill bool) {
	s := w.servers[i]
	w.servers = slices.Delete(w.servers, i, i+1)
	w.planned("%s stops, killed: %t", s.name, kill)
	if kill {
		s.kill()
	}
	s.cancel()
	<-s.stopped
	s.dead.Store(true)
}

// publish publishes a release as an import does.
func (w *webhookWorld) publish() {
	w.releases++
	entries := make([]journal.Entry, 1+w.IntN(5))
	w.planned("release %d has %d events", w.releases, len(entries)+1)
	for i := range entries {
		slug := fmt.Sprintf("tool-%d-%d", w.releases, i)
		entries[i] = journal.Entry{Kind: journal.ToolCreated, Event: journal.EventToolCreated, Slug: slug, After: []byte(`{"slug":"` + slug + `"}`)}
	}
	entries = append(entries, journal.Entry{Kind: journal.CatalogPublished, Event: journal.EventCatalogPublished, After: []byte(`{"updated_at":"2026-11-15"}`)})
	ctx := context.Background()
	w.mu.Lock() // no event arrives before its number is known
	defer w.mu.Unlock()
	before, err := journal.Newest(ctx, w.store.Read.JournalEntry)
	w.check(err)
	w.check(w.store.Exclusive(ctx, func(tx *ent.Tx) error {
		err := tx.Release.Create().SetID(w.releases).SetFeedDate("2026-11-15").SetToolsTotal(0).SetToolsTested(0).SetToolsRetired(0).SetComparisonsTotal(0).Exec(ctx)
		if err != nil {
			return err
		}
		out := journal.NewWriter(tx, w.releases)
		for _, entry := range entries {
			if err := out.Add(ctx, entry); err != nil {
				return err
			}
		}
		return out.Flush(ctx)
	}))
	numbers, err := w.store.Read.JournalEntry.Query().Where(journalentry.IDGT(before)).Order(journalentry.ByID()).IDs(ctx)
	w.check(err)
	for _, number := range numbers {
		w.events[journal.ID(number)] = number
	}
	w.released[numbers[len(numbers)-1]] = true
}

func (s *webhookServer) CloseIdleConnections() {}

// RoundTrip is the network and the receiver.
func (s *webhookServer) RoundTrip(request *http.Request) (*http.Response, error) {
	w := s.world
	body, err := io.ReadAll(request.Body)
	if err != nil || s.dead.Load() {
		return nil, syscall.ECONNRESET
	}
	r := w.receivers[slices.IndexFunc(w.receivers, func(r *receiver) bool { return r.host == request.URL.Host })]
	id := ""
	for name, values := range request.Header { // which are in lower case
		if strings.EqualFold(name, "webhook-id") {
			id = values[0]
		}
	}
	m, wait := w.arrive(s, r, id, body)
	if trace := httptrace.ContextClientTrace(request.Context()); trace != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	select {
	case <-time.After(wait):
	case <-request.Context().Done():
		m.status = 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.busy[s]--
	m.ended = true
	if s.dead.Load() {
		m.status = 0
	}
	w.happened("%s: %s gets %d for %s", r.host, s.name, m.status, m.id)
	if m.status == 0 {
		return nil, syscall.ECONNRESET
	}
	header := http.Header{}
	if m.status == http.StatusTooManyRequests {
		header.Set("Retry-After", fmt.Sprint(int(retryAfter/time.Second)))
	}
	if m.status < 300 {
		for _, number := range m.events {
			if r.done[number] == nil {
				r.done[number] = m
			}
		}
	}
	return &http.Response{StatusCode: m.status, Header: header, Body: http.NoBody, Request: request}, nil
}

// arrive checks a request when it arrives, and decides about the response.
func (w *webhookWorld) arrive(s *webhookServer, r *receiver, id string, body []byte) (m *sending, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m = &sending{server: s, id: id, events: w.numbersIn(body)}
	for other, n := range r.busy {
		if n > 0 && other != s && !other.dead.Load() {
			w.violated("%s and %s send to %s at the same time", other.name, s.name, r.host)
		}
	}
	r.busy[s]++
	if before, found := r.bodies[id]; found && before != string(body) {
		w.violated("%s: message %s has two contents", r.host, id)
	}
	r.bodies[id] = string(body)
	attempts := 0
	for _, earlier := range r.sent {
		if earlier.id != id {
			continue
		}
		attempts++
		if !earlier.server.dead.Load() && (!earlier.ended || earlier.status == http.StatusOK) {
			w.violated("%s: %s sends %s again, which %s sent with status %d", r.host, s.name, id, earlier.server.name, earlier.status)
		}
	}
	for _, number := range m.events {
		if w.released[number] {
			for _, earlier := range w.events {
				if earlier < number && r.done[earlier] == nil && !slices.Contains(m.events, earlier) {
					w.violated("%s: catalog.published (event %d) arrives before event %d is delivered", r.host, number, earlier)
				}
			}
			continue
		}
		first := !slices.ContainsFunc(r.sent, func(earlier *sending) bool { return slices.Contains(earlier.events, number) })
		if first && number < r.newest {
			w.violated("%s: event %d arrives after event %d", r.host, number, r.newest)
		}
		r.newest = max(r.newest, number)
	}
	r.sent = append(r.sent, m)
	hash := fnv.New32a()
	fmt.Fprint(hash, w.seed, r.host, id, attempts)
	luck := hash.Sum32()
	m.status = http.StatusOK
	switch r.mode {
	case fails:
		m.status = http.StatusInternalServerError
	case hangs:
		wait = time.Hour
	case postpone:
		m.status = http.StatusTooManyRequests
	case resets:
		m.status = 0
	case slow:
		wait = time.Duration(luck%4000) * time.Millisecond
	case flaky:
		if luck%3 == 0 {
			m.status = http.StatusServiceUnavailable
		}
		wait = time.Duration(luck%100) * time.Millisecond
	}
	return m, wait
}

// numbersIn returns the numbers of the events in a message.
func (w *webhookWorld) numbersIn(body []byte) (numbers []int) {
	type event struct{ ID string }
	var message struct {
		event
		Data struct{ Events []event }
	}
	w.check(json.Unmarshal(body, &message))
	events := message.Data.Events
	if !strings.HasPrefix(message.ID, "batch_") {
		events = []event{message.event}
	}
	for _, e := range events {
		number, known := w.events[e.ID]
		if !known {
			w.violated("got an event with the ID %q, which the journal does not have", e.ID)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// finish lets a server deliver what is due to receivers that work, and compares the
// result with the journal.
func (w *webhookWorld) finish() {
	w.mu.Lock()
	for _, r := range w.receivers {
		r.mode = works
	}
	w.mu.Unlock()
	time.Sleep(2 * retryAfter)
	w.start()
	time.Sleep(13 * time.Second) // leases of killed servers expire, and the first retry succeeds
	w.stop(0, false)
	for _, r := range w.receivers {
		w.checkDelivered(r)
	}
}

// checkDelivered checks that every event has arrived or will be sent again in time.
func (w *webhookWorld) checkDelivered(r *receiver) {
	rows, err := w.store.Read.Delivery.Query().Where(delivery.EndpointID(r.endpoint.ID)).All(context.Background())
	w.check(err)
	pending := map[int]*ent.Delivery{}
	for _, row := range rows {
		pending[row.Event] = row
	}
	now, err := w.store.Read.Endpoint.Get(context.Background(), r.endpoint.ID)
	w.check(err)
	for _, number := range w.events {
		row := pending[number]
		// After many failures, new events wait until a retry succeeds.
		waits := number > now.Position && now.Failures >= probeAfter && len(rows) > 0
		if r.done[number] != nil || waits {
			continue
		}
		if row == nil {
			w.violated("%s: event %d is neither delivered nor pending", r.host, number)
			continue
		}
		latest := time.Now().Add(time.Duration(float64(retries[min(row.Attempts, len(retries))-min(row.Attempts, 1)]) * jitter))
		if !row.Held && (row.NextAt.Before(time.Now().Add(-2*time.Second)) || row.NextAt.After(latest)) {
			w.violated("%s: event %d is due at %s after %d attempts, want by %s", r.host, number, row.NextAt, row.Attempts, latest)
		}
	}
}
