package billing

import (
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/mail"
	"palmares/internal/testdb"
)

const month = 30 * 24 * time.Hour

// A subscription's whole life, told by events.
func TestLife(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wantPeriodEnd(sub.periodEnd)

		s.wait(month)
		sub.periodEnd = sub.periodEnd.Add(month)
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		s.wantPeriodEnd(sub.periodEnd)

		s.fallBehind(&sub)
		s.recover(&sub)
		s.fallBehind(&sub) // a later failure is told anew
		s.recover(&sub)
		if n := s.smtp.Count(owner); n != 2 {
			t.Errorf("%d letters", n)
		}

		sub.cancels = true
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Pro) // until the period ends
		if !s.row().Cancels {
			t.Error("that it ends is not known")
		}

		s.wait(month)
		sub.status = stripe.SubscriptionStatusCanceled
		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}

		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.isNow(stripe.EventTypeCheckoutSessionCompleted, sub, s.begun(stripe.SubscriptionStatusActive))
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made("POST /v1/customers")); n != 1 {
			t.Errorf("%d customers were made", n)
		}
	})
}

// fallBehind fails a payment: Pro goes on, and its owner is told once.
func (s *shop) fallBehind(sub *subscription) {
	s.t.Helper()
	sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-time.Hour)
	s.isNow(stripe.EventTypeInvoicePaymentFailed, *sub)
	s.wantPlan(auth.Pro)
	for range 3 {
		s.look(s.t.Context())
		s.wait(time.Hour)
	}
	s.isNow(stripe.EventTypeInvoicePaymentFailed, *sub) // the next attempt
	s.look(s.t.Context())
	s.wantPlan(auth.Pro)
	until := sub.invoiced.Add(Grace).UTC().Format("2 January 2006")
	if letter := s.smtp.Wait(s.t, owner); !strings.Contains(letter, until) || !strings.Contains(letter, "failed") {
		s.t.Errorf("the letter does not say until when: %s", letter)
	}
}

func (s *shop) recover(sub *subscription) {
	s.t.Helper()
	sub.status = stripe.SubscriptionStatusActive
	s.isNow(stripe.EventTypeInvoicePaid, *sub)
	s.wantPlan(auth.Pro)
	if row := s.row(); row.PastDueSince != nil || row.NoticedAt != nil {
		s.t.Errorf("a failure that is over is still known: %v", row)
	}
}

func (s *shop) wantPeriodEnd(want time.Time) {
	s.t.Helper()
	if got := s.row().PeriodEnd; got == nil || !got.Equal(want) {
		s.t.Errorf("the period ends at %v, not %v", got, want)
	}
}

// No event comes when the grace ends.
func TestGraceEnds(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-2*time.Hour)
		sub.finalizedAt = s.clock().Add(-time.Hour)
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.look(t.Context())
		s.smtp.Wait(t, owner)

		s.wait(Grace - time.Hour - time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Pro)
		if PlanOf(s.row(), s.clock()) != auth.Pro {
			t.Error("the grace is over too early")
		}
		s.wait(time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}
		s.look(t.Context())

		// A payment that comes at last brings it back.
		sub.status = stripe.SubscriptionStatusActive
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.wantPlan(auth.Pro)
		if n := s.smtp.Count(owner); n != 2 {
			t.Errorf("%d letters", n)
		}
	})
}

// Who is found too late for any grace is not told that Pro goes on.
func TestGraceWasOver(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-Grace-time.Hour)
		s.peer.set("cus_1", sub)
		s.wait(2 * time.Hour)
		s.look(t.Context())
		s.look(t.Context())
		s.wantPlan(auth.Developer)
		if letter := s.smtp.Wait(t, owner); !strings.Contains(letter, "has ended") {
			t.Errorf("not the letter that Pro has ended: %s", letter)
		}
		if n := s.smtp.Count(owner); n != 1 {
			t.Errorf("%d letters", n)
		}
	})
}

// A letter that cannot be sent is tried again.
func TestNoticeIsRepeated(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.smtp.Stop()
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.look(t.Context())
		if s.row().NoticedAt != nil {
			t.Error("a letter that was not sent counts")
		}
		s.smtp.Start(t)
		s.look(t.Context())
		s.smtp.Wait(t, owner)
		if s.row().NoticedAt == nil {
			t.Error("a letter that was sent does not count")
		}
	})
}

// One that can never be sent is told of once, not each minute.
func TestNoticeThatIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		tries := 0
		refusing := testdb.StartSMTPWith(t, testdb.SMTPOptions{Rcpt: func(string) error {
			tries++
			return &smtp.SMTPError{Code: 550, Message: "no such user"}
		}})
		var err error
		if s.Mail, err = mail.New(mail.Config{URL: refusing.URL, From: "palmares@palmares.example", Log: s.Log}); err != nil {
			t.Fatal(err)
		}
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		for range 3 {
			s.look(t.Context())
		}
		if tries != 1 || s.row().NoticedAt == nil {
			t.Errorf("tried %d times", tries)
		}
		if n := strings.Count(s.log.String(), "a failed payment was not told of"); n != 1 {
			t.Errorf("logged %d times: %s", n, s.log)
		}
	})
}

func TestStatuses(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		for status, want := range map[stripe.SubscriptionStatus]auth.Plan{
			stripe.SubscriptionStatusTrialing:          auth.Pro,
			stripe.SubscriptionStatusActive:            auth.Pro,
			stripe.SubscriptionStatusPastDue:           auth.Pro,
			stripe.SubscriptionStatusUnpaid:            auth.Developer,
			stripe.SubscriptionStatusPaused:            auth.Developer,
			stripe.SubscriptionStatusIncomplete:        auth.Developer,
			stripe.SubscriptionStatusIncompleteExpired: auth.Developer,
			stripe.SubscriptionStatusCanceled:          auth.Developer,
			"a word of next year's":                    auth.Developer,
		} {
			sub := s.begun(status)
			s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
			s.wantPlan(want)
			// Of two, the better one counts, whichever is listed first.
			s.isNow(stripe.EventTypeCustomerSubscriptionCreated, sub, s.begun(stripe.SubscriptionStatusActive))
			s.wantPlan(auth.Pro)
			s.isNow(stripe.EventTypeCustomerSubscriptionDeleted)
			s.wantPlan(auth.Developer)
		}
	})
}

// A date to end at is an end, too.
func TestCancelAt(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.cancelAt = sub.periodEnd
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		if !s.row().Cancels {
			t.Error("that it ends is not known")
		}
	})
}
