package billing

import (
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stripe/stripe-go/v86"

	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
)

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

// Of many servers that see a failure at the same time, one tells of it.
func TestNoticeFromManyServers(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		seen, err := s.Store.Current().Customer.Query().WithAccount().Only(t.Context()) // by each of them
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := s.notice(t.Context(), seen); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.smtp.Count(owner); n != 1 {
			t.Errorf("%d letters", n)
		}
	})
}

// One that can never be sent is told of once, not each minute.
func TestNoticeThatIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		tries := 0
		refusing := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(string) error {
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
