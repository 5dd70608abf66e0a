package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/delivery"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/notify/mail"
)

// testTiming are times for tests that run jobs. Who answers at all is prompt, also
// on a machine that is busy: so events come in their order.
var testTiming = timing{
	attempt: 20 * time.Second, work: 2 * time.Second, record: 20 * time.Second, locked: time.Minute, email: 100 * time.Millisecond,
	stop: 10 * time.Second, prompt: 20 * time.Second, poll: 50 * time.Millisecond, lease: 3 * time.Second,
}

// clock is a time that moves when it is told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = to
}

func (c *clock) pass(d time.Duration) { c.move(c.now().Add(d)) }

// site is Webhooks with an owner who may have endpoints.
type site struct {
	*Webhooks
	t     *testing.T
	owner *ent.Account
	clock *clock
	logs  *testkit.Log
}

const ownerEmail = "pro@example.com"

func newSite(t *testing.T, s *store.Store) *site {
	t.Helper()
	owner, err := auth.NewAccounts(s).Create(t.Context(), ownerEmail, auth.Pro)
	if err != nil {
		t.Fatal(err)
	}
	logs := &testkit.Log{}
	mailer, err := mail.New(mail.Config{From: "palmares@example.com", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := New(Config{
		PublicURL: "http://palmares.example", ServiceName: "palmares", Store: s, Mail: mailer, Loopback: true,
		Log: slog.New(slog.NewTextHandler(logs, nil)),
	})
	w.timing = testTiming
	return &site{w, t, owner, &clock{}, logs}
}

// stopClock lets time pass only when the test says so.
func (s *site) stopClock() {
	s.clock.move(time.Now())
	s.now = s.clock.now
}

// withMail gives the owner a mailbox.
func (s *site) withMail() *testkit.SMTPServer {
	s.t.Helper()
	server := testkit.StartSMTP(s.t)
	mailer, err := mail.New(mail.Config{URL: server.URL, From: "palmares@example.com", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.Mail = mailer
	background(s.t, mailer.Run)
	return server
}

func (s *site) add(wish Wish) *ent.Endpoint {
	s.t.Helper()
	made, err := s.Add(s.t.Context(), s.owner, wish)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.find(made.ID)
}

// find is an endpoint as it is now.
func (s *site) find(id int) *ent.Endpoint {
	s.t.Helper()
	e, err := s.Find(s.t.Context(), nil, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// sendDue does what a job would, once.
func (s *site) sendDue(e *ent.Endpoint) {
	s.t.Helper()
	if _, err := s.round(s.t.Context(), always, e.ID); err != nil {
		s.t.Fatal(err)
	}
}

// always lets a round begin whatever is due.
func always() bool { return true }

// waiting are an endpoint's deliveries, by event.
func (s *site) waiting(e *ent.Endpoint) []*ent.Delivery {
	s.t.Helper()
	rows, err := s.Store.Current().Delivery.Query().Where(delivery.EndpointID(e.ID)).Order(delivery.ByEvent()).All(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

func (s *site) attempts(e *ent.Endpoint) []*ent.Attempt {
	s.t.Helper()
	all, _, err := s.Attempts(s.t.Context(), e, AttemptsQuery{Most: 10_000})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// background runs something until the test ends.
func background(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// eventually waits for something.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	wait.Until(t, what, is)
}

// tell publishes a release with so many new tools and its own event, which is
// the last, and returns the number of the first.
func tell(t *testing.T, s *store.Store, tools int) (first int) {
	t.Helper()
	entries := make([]journal.Entry, tools)
	for i := range entries {
		entries[i] = toolCreated(fmt.Sprintf("tool-%d", i), "code")
	}
	return tellAll(t, s, entries...)
}

func toolCreated(slug, category string) journal.Entry {
	return journal.Entry{Kind: journal.ToolCreated, Event: journal.EventToolCreated, Slug: slug, Category: category, After: []byte(`{"slug":"` + slug + `"}`)}
}

func tellAll(t *testing.T, s *store.Store, entries ...journal.Entry) (first int) {
	t.Helper()
	newest, err := journal.Newest(t.Context(), s.Current().JournalEntry)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Exclusive(t.Context(), func(tx *ent.Tx) error {
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
	if err != nil {
		t.Fatal(err)
	}
	first, err = s.Current().JournalEntry.Query().Where(journalentry.IDGT(newest)).Order(journalentry.ByID()).FirstID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// ids are those of so many events from one on.
func ids(first, count int) (all []string) {
	for number := first; number < first+count; number++ {
		all = append(all, (&journal.Event{Number: number}).ID())
	}
	return all
}
