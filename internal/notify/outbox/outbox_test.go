package outbox

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
)

const ana = "ana@example.com"

// server is one of the servers of a database, with a clock of its own.
type server struct {
	*Outbox
	log   *testkit.Log
	later time.Duration
}

func newServer(t *testing.T, s *store.Store, url string) *server {
	t.Helper()
	started := &server{log: &testkit.Log{}}
	log := slog.New(slog.NewTextHandler(started.log, nil))
	mailer := check.Try(mail.New(mail.Config{URL: url, From: "palmares@palmares.example", Log: log})).OK(t)
	started.Outbox = New(s, mailer, log)
	started.now = func() time.Time { return time.Now().Add(started.later) }
	return started
}

// sendAfter sends what is due after a time.
func (s *server) sendAfter(t *testing.T, wait time.Duration) {
	t.Helper()
	s.later += wait
	check.Equal(t, s.Send(t.Context()), nil)
}

func add(t *testing.T, s *store.Store, about, subject string) {
	t.Helper()
	check.OK(t, s.Update(t.Context(), func(tx *ent.Tx) error {
		return Add(t.Context(), tx, about, mail.Message{To: ana, Subject: subject, Text: "text", HTML: "<p>text"})
	}))
}

// Several servers send each notice once, and nothing of a transaction that failed or that
// was withdrawn.
func TestNoticesAreSentOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		box := testkit.StartSMTP(t)
		const notices = 10
		for range notices {
			add(t, s, "", "Hello")
		}
		add(t, s, "endpoint 1", "Withdrawn")
		failed := errors.New("failed")
		if err := s.Update(t.Context(), func(tx *ent.Tx) error {
			check.OK(t, Add(t.Context(), tx, "", mail.Message{To: ana, Subject: "Rolled back"}))
			return failed
		}); !errors.Is(err, failed) {
			t.Errorf("got %v, want the error", err)
		}
		check.OK(t, s.Update(t.Context(), func(tx *ent.Tx) error { return Withdraw(t.Context(), tx, "endpoint 1") }))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { newServer(t, s, box.URL).sendAfter(t, time.Second) })
		}
		all.Wait()
		for range notices {
			check.Contains(t, box.Wait(t, ana), "Subject: Hello", "want a notice that was committed")
		}
		newServer(t, s, box.URL).sendAfter(t, 2*lifetime)
		check.Equal(t, box.Count(ana), notices)
		check.Equal(t, s.Read.Notice.Query().CountX(t.Context()), 0)
	})
}

// A notice survives an outage of the mail server and a server that dies while it sends. All
// attempts have the same Message-ID.
func TestNoticesAreRetried(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		box := testkit.StartSMTP(t)
		box.Stop()
		add(t, s, "", "Hello")
		first := newServer(t, s, box.URL)
		for range 3 {
			first.sendAfter(t, time.Second)
		}
		n := s.Read.Notice.Query().OnlyX(t.Context())
		check.Equal(t, n.Attempts, 1, first.log)
		check.Equal(t, strings.Count(first.log.String(), "sending an email failed, will retry"), 1, first.log)
		check.Lacks(t, first.log.String(), ana)
		first.sendAfter(t, minDelay)
		box.Start(t)
		id := s.Read.Notice.Query().OnlyX(t.Context()).MessageID
		// This server took the notice and died.
		s.Write.Notice.Update().AddAttempts(1).SetNextAt(time.Now().Add(first.later + lease)).ExecX(t.Context())
		next := newServer(t, s, box.URL)
		next.sendAfter(t, first.later+time.Second)
		check.Equal(t, box.Count(ana), 0, "email that another server is sending")
		next.sendAfter(t, lease)
		check.Contains(t, box.Wait(t, ana), id)
	})
}

// A notice that cannot be delivered is logged and dropped: at once if the mail server
// rejects it, or else after three days.
func TestNoticesAreDropped(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	attempts := 0
	for code, want := range map[int]int{550: 1, 451: 7 + 71} { // within 64 minutes, and then every hour until three days have passed
		attempts = 0
		refusing := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(string) error {
			attempts++
			return &smtp.SMTPError{Code: code, Message: "no such user " + ana}
		}})
		add(t, s, "", "Hello")
		server := newServer(t, s, refusing.URL)
		for wait := time.Duration(0); wait < lifetime+2*time.Hour; wait += time.Minute {
			server.sendAfter(t, time.Minute)
		}
		log := server.log.String()
		check.Equal(t, s.Read.Notice.Query().CountX(t.Context()), 0, code)
		check.Equal(t, strings.Count(log, "level=ERROR"), 1, code)
		check.Lacks(t, log, ana, code)
		check.Equal(t, server.mail.Failed.Load(), 1, code)
		check.Equal(t, attempts, want, "%d: attempts", code)
	}
}
