package webhook

import (
	"log/slog"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
)

// gone disables an endpoint by its receiver's answer.
func gone(t *testing.T, s *site) (id int) {
	t.Helper()
	r := newReceiver(t)
	r.answersStatus(410)
	e := s.add(Wish{URL: r.URL})
	tell(t, s.Store, 0)
	s.sendDue(e)
	return e.ID
}

// A server that ends before there is mail leaves the letter to the next, which
// sends it once.
func TestLetterIsNotLost(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		server := testkit.StartSMTP(t)
		server.Stop()
		mailer, err := mail.New(mail.Config{URL: server.URL, From: "palmares@example.com", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s.Mail = mailer
		gone(t, s)
		stop := background(t, s.Run)
		eventually(t, "there is no mail", func() bool { return strings.Contains(s.logs.String(), "sending a webhook email failed, will retry") })
		stop()
		if strings.Contains(s.logs.String(), ownerEmail) {
			t.Error(s.logs)
		}
		next := &site{New(s.Config), t, s.owner, s.clock, s.logs}
		next.timing = testTiming
		box := next.withMail()
		background(t, next.Run)
		if letter := box.Wait(t, ownerEmail); !strings.Contains(letter, "410") {
			t.Error(letter)
		}
		eventually(t, "it is known to be sent", func() bool { return !db.Current().Endpoint.Query().OnlyX(t.Context()).NotifyOwner })
		tell(t, db, 0)
		next.sendDue(db.Current().Endpoint.Query().OnlyX(t.Context()))
		if n := box.Count(ownerEmail); n != 1 {
			t.Errorf("%d letters", n)
		}
	})
}

// Who turns it on again before the letter was sent knows already.
func TestNoLetterAfterResumption(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	box := s.withMail()
	for _, end := range []func(id int) error{
		func(id int) error { return s.Resume(t.Context(), s.find(id)) },
		func(id int) error { return s.Pause(t.Context(), s.find(id)) },
	} {
		id := gone(t, s)
		if err := end(id); err != nil {
			t.Fatal(err)
		}
		s.sendDue(s.find(id))
	}
	if n := box.Count(ownerEmail); n != 0 {
		t.Errorf("%d letters", n)
	}
}
