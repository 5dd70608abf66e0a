package webhook

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// testTiming speeds up polling. Its long prompt makes events arrive in order even
// on a busy machine.
var testTiming = timing{
	attempt: 20 * time.Second, work: 2 * time.Second, record: 20 * time.Second, locked: time.Minute,
	stop: 10 * time.Second, prompt: 20 * time.Second, poll: 50 * time.Millisecond, lease: 3 * time.Second,
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = to
}

func (c *clock) advance(d time.Duration) { c.set(c.now().Add(d)) }

// fixture is Webhooks with an account on the Pro plan.
type fixture struct {
	*Webhooks
	t     *testing.T
	owner *ent.Account
	clock *clock
	logs  *testkit.Log
}

const ownerEmail = "pro@example.com"

func newFixture(t *testing.T, s *store.Store) *fixture {
	t.Helper()
	owner := check.Try(auth.NewAccounts(s).Create(t.Context(), ownerEmail, auth.Pro)).OK(t)
	logs := &testkit.Log{}
	w := New(Config{
		PublicURL: "http://palmares.example", ServiceName: "palmares", Store: s, Loopback: true,
		Release: func(ctx context.Context) (*release.Release, error) {
			return release.NewCatalog(s, slog.New(slog.DiscardHandler), 0, nil).Load(ctx)
		},
		Log: slog.New(slog.NewTextHandler(logs, nil)),
	})
	w.timing = testTiming
	return &fixture{w, t, owner, &clock{}, logs}
}

func newSQLiteFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, testkit.Open(t, testkit.SQLite(t)))
}

// eachFixture runs a test on each kind of database.
func eachFixture(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) { test(t, newFixture(t, db)) })
}

// freezeClock stops the time, which only clock.advance changes from then on.
func (s *fixture) freezeClock() {
	s.clock.set(time.Now())
	s.now = s.clock.now
}

// notices returns the emails that are to be sent.
func (s *fixture) notices() []*ent.Notice {
	s.t.Helper()
	return s.Store.Read.Notice.Query().AllX(s.t.Context())
}

func (s *fixture) add(spec NewEndpoint) *ent.Endpoint {
	s.t.Helper()
	added := check.Try(s.Add(s.t.Context(), s.owner, spec)).OK(s.t)
	return s.find(added.ID)
}

// addReceiver starts a receiver and adds an endpoint with its URL.
func (s *fixture) addReceiver() (*receiver, *ent.Endpoint) {
	s.t.Helper()
	r := newReceiver(s.t)
	return r, s.add(NewEndpoint{URL: r.URL})
}

// find returns the current state of an endpoint.
func (s *fixture) find(id int) *ent.Endpoint {
	s.t.Helper()
	return check.Try(s.Find(s.t.Context(), nil, id)).OK(s.t)
}

// sendDue runs one round.
func (s *fixture) sendDue(e *ent.Endpoint) {
	s.t.Helper()
	check.Try(s.round(s.t.Context(), always, e.ID)).OK(s.t)
}

// always lets a round send everything that is due.
func always() bool { return true }

// deliveries returns the pending retries of an endpoint, by event.
func (s *fixture) deliveries(e *ent.Endpoint) []*ent.Delivery {
	s.t.Helper()
	return check.Try(s.Store.Read.Delivery.Query().Where(delivery.EndpointID(e.ID)).Order(delivery.ByEvent()).All(s.t.Context())).OK(s.t)
}

func (s *fixture) attempts(e *ent.Endpoint) []*ent.Attempt {
	s.t.Helper()
	all, _, err := s.Attempts(s.t.Context(), e, AttemptsQuery{Limit: 10_000})
	check.OK(s.t, err)
	return all
}

// background calls run until the test ends or stop is called.
func background(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	wait.Until(t, what, is)
}

// publishTools publishes a release with a number of new tools, followed by the
// event of the release itself. It returns the number of the first event.
func (s *fixture) publishTools(tools int) (first int) {
	s.t.Helper()
	entries := make([]journal.Entry, tools)
	for i := range entries {
		entries[i] = toolCreated(fmt.Sprintf("tool-%d", i), "code")
	}
	return s.publish(entries...)
}

func toolCreated(slug, category string) journal.Entry {
	return journal.Entry{Kind: journal.ToolCreated, Event: journal.EventToolCreated, Slug: slug, Category: category, After: []byte(`{"slug":"` + slug + `"}`)}
}

// publish publishes a release with these entries and the event of the release.
// It returns the number of the first event.
func (s *fixture) publish(entries ...journal.Entry) (first int) {
	t := s.t
	t.Helper()
	newest := check.Try(journal.Newest(t.Context(), s.Store.Read.JournalEntry)).OK(t)
	err := s.Store.Exclusive(t.Context(), func(tx *ent.Tx) error {
		last, err := store.NewestRelease(t.Context(), tx.Release)
		if err != nil {
			return err
		}
		number := 1
		if last != nil {
			number = last.ID + 1
		}
		err = tx.Release.Create().SetID(number).SetFeedDate("2026-11-15").SetToolsTotal(0).SetToolsTested(0).SetToolsRetired(0).SetComparisonsTotal(0).Exec(t.Context())
		if err != nil {
			return err
		}
		out := journal.NewWriter(tx, number)
		entries = append(entries, journal.Entry{Kind: journal.CatalogPublished, Event: journal.EventCatalogPublished, After: []byte(`{"updated_at":"2026-11-15"}`)})
		for _, entry := range entries {
			if err := out.Add(t.Context(), entry); err != nil {
				return err
			}
		}
		return out.Flush(t.Context())
	})
	check.OK(t, err)
	first = check.Try(s.Store.Read.JournalEntry.Query().Where(journalentry.IDGT(newest)).Order(journalentry.ByID()).FirstID(t.Context())).OK(t)
	return first
}

// ids returns the IDs of consecutive events.
func ids(first, count int) (all []string) {
	for number := first; number < first+count; number++ {
		all = append(all, (&journal.Event{Number: number}).ID())
	}
	return all
}

// receiver is a server that records the events it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*received
	handle func(n int, w http.ResponseWriter, r *http.Request) // the n-th request
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := newUnstarted(t)
	r.Start()
	return r
}

func newUnstarted(t *testing.T) *receiver {
	r := &receiver{handle: func(int, http.ResponseWriter, *http.Request) {}}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, &received{req.Header, body})
		n, handle := len(r.got), r.handle
		r.mu.Unlock()
		handle(n, w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// respond changes how the receiver responds.
func (r *receiver) respond(handle func(n int, w http.ResponseWriter, r *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
}

func (r *receiver) respondStatus(status int) {
	r.respond(func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// hold makes the first request wait: arrived is closed when it has arrived, and
// it continues when the caller closes proceed.
func (r *receiver) hold() (arrived, proceed chan struct{}) {
	arrived, proceed = make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.respond(func(int, http.ResponseWriter, *http.Request) { once.Do(func() { close(arrived); <-proceed }) })
	return arrived, proceed
}

func (r *receiver) all() []*received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// reset removes the recorded events.
func (r *receiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = nil
}

// ids returns the event IDs in the order of arrival.
func (r *receiver) ids() (all []string) {
	for _, one := range r.all() {
		all = append(all, one.header.Get("webhook-id"))
	}
	return all
}

func (r *receiver) wait(t *testing.T, n int) []*received {
	t.Helper()
	eventually(t, "the events arrive", func() bool { return len(r.all()) >= n })
	return r.all()
}
