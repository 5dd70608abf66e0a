package billing

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/customer"
	"palmares/internal/core/problem"
)

func TestSubscribe(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		address, err := s.Subscribe(t.Context(), s.account)
		if err != nil || !strings.HasPrefix(address, "https://checkout.stripe.test/") {
			t.Fatalf("%q, %v", address, err)
		}
		wantForm(t, s.peer.only(t, "POST /v1/customers"), map[string]string{
			"email": owner, "metadata[account]": fmt.Sprint(s.account.ID),
		})
		wantForm(t, s.peer.only(t, "GET /v1/subscriptions"), map[string]string{
			"customer": "cus_1", "status": "all", "expand[0]": "data.latest_invoice",
		})
		wantForm(t, s.peer.only(t, "GET /v1/checkout/sessions"), map[string]string{"customer": "cus_1", "status": "open"})
		checkout := s.peer.only(t, "POST /v1/checkout/sessions")
		wantForm(t, checkout, map[string]string{
			"mode": "subscription", "customer": "cus_1", "client_reference_id": fmt.Sprint(s.account.ID),
			"line_items[0][price]": priceID, "line_items[0][quantity]": "1",
			"automatic_tax[enabled]": "true", "tax_id_collection[enabled]": "true", "billing_address_collection": "required",
			"customer_update[address]": "auto", "customer_update[name]": "auto",
			"subscription_data[metadata][account]": fmt.Sprint(s.account.ID),
			"success_url":                          publicURL + "/account/plan/done", "cancel_url": publicURL + "/account/plan",
		})
		if len(s.peer.made("GET /v1/prices")) > 0 {
			t.Error("a price that was set was looked up")
		}
		row, err := s.Customer(t.Context(), s.account)
		if err != nil || row == nil || row.ID != "cus_1" || row.Email != owner {
			t.Errorf("%v, %v", row, err)
		}
		s.wantPlan(auth.Developer) // nothing is paid yet
	})
}

func wantForm(t *testing.T, made call, want map[string]string) {
	t.Helper()
	for field, value := range want {
		if got := made.form.Get(field); got != value {
			t.Errorf("%s %s: %s is %q, not %q", made.method, made.path, field, got, value)
		}
	}
	if len(made.form) != len(want) {
		t.Errorf("%s %s: %d fields, not %d: %v", made.method, made.path, len(made.form), len(want), made.form)
	}
}

// Both pages lead to one checkout of one customer.
func TestSubscribeTwiceAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.togetherOn("POST /v1/customers", 2)
		addresses := make([]string, 2)
		var both sync.WaitGroup
		for i := range addresses {
			both.Go(func() {
				address, err := s.Subscribe(t.Context(), s.account)
				if err != nil {
					t.Error(err)
				}
				addresses[i] = address
			})
		}
		both.Wait()
		s.wantCustomers(1)
		if addresses[0] != addresses[1] {
			t.Errorf("two checkouts: %q", addresses)
		}
	})
}

// togetherOn holds the first requests of a kind until as many are there.
func (s *shop) togetherOn(what string, many int) {
	var mu sync.Mutex
	there, all := 0, make(chan struct{})
	s.peer.onReading(func(made string) {
		if made != what {
			return
		}
		mu.Lock()
		if there++; there == many {
			close(all)
		}
		mu.Unlock()
		<-all
	})
}

func (s *shop) wantCustomers(want int) {
	s.t.Helper()
	n, err := s.Store.Write.Customer.Query().Where(customer.AccountID(s.account.ID)).Count(s.t.Context())
	if err != nil || n != want {
		s.t.Errorf("%d customers, not %d: %v", n, want, err)
	}
}

// Also when Stripe made two customers, one is used.
func TestSubscribeTwiceAroundAMinute(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.togetherOn("POST /v1/customers", 2)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, err := s.Subscribe(t.Context(), s.account); err != nil {
					t.Error(err)
				}
			})
			for len(s.peer.made("POST /v1/customers")) == 0 { // the first is on its way
				time.Sleep(time.Millisecond)
			}
			s.wait(61 * time.Second)
		}
		both.Wait()
		s.wantCustomers(1)
	})
}

func TestSubscribeReusesOpenCheckout(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.peer.sessions = []map[string]any{{"status": "open", "url": ""}, {"status": "open", "url": "https://checkout.stripe.test/left-open"}}
		address, err := s.Subscribe(t.Context(), s.account)
		if err != nil || address != "https://checkout.stripe.test/left-open" {
			t.Errorf("%q, %v", address, err)
		}
		if len(s.peer.made("POST /v1/checkout/sessions")) > 0 {
			t.Error("a second checkout was opened")
		}
	})
}

// What is found on the way is kept: the news of it may be late.
func TestSubscribeTwice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		_, err := s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.wantPlan(auth.Pro)
		if len(s.peer.made("POST /v1/checkout/sessions")) > 0 {
			t.Error("a second checkout was opened")
		}
	})
}

func wantProblem(t *testing.T, err error, code problem.Code) {
	t.Helper()
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code != code {
		t.Errorf("%v is not %s", err, code)
	}
}

// Whoever has had more subscriptions than fit on a page still has the last.
func TestManySubscriptions(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		var all []subscription
		for range 21 {
			all = append(all, s.begun(stripe.SubscriptionStatusCanceled))
		}
		all[20].status = stripe.SubscriptionStatusActive
		s.isNow(stripe.EventTypeCustomerSubscriptionCreated, all...)
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made("GET /v1/subscriptions")); n != 3 {
			t.Errorf("%d pages were read", n)
		}
	})
}

func TestSync(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		if err := s.Sync(t.Context(), s.account); err != nil { // nobody's customer
			t.Fatal(err)
		}
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		if err := s.Sync(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.wantPlan(auth.Pro)
		s.peer.set("cus_1")
		var told []string
		err := s.SyncAll(t.Context(), func(row *ent.Customer) { told = append(told, row.ID+row.Status+row.Edges.Account.Email) })
		if err != nil || len(told) != 1 || told[0] != "cus_1"+owner {
			t.Errorf("%q, %v", told, err)
		}
		s.wantPlan(auth.Developer)
	})
}

// Where no key is set, nothing is sold.
func TestClosed(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		closed := New(Config{Store: s.Store, Mail: s.Mail, Log: s.Log})
		if closed.Open() {
			t.Error("it is open")
		}
		_, err := closed.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.NotFound)
		_, err = closed.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.NotFound)
		_, _, err = closed.SetUp(t.Context())
		wantProblem(t, err, problem.BadInput)
		_, _, err = closed.SetUpManaging(t.Context())
		wantProblem(t, err, problem.BadInput)
		wantProblem(t, closed.SyncAll(t.Context(), nil), problem.BadInput)
		if err := closed.Close(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.subscribed()
		wantProblem(t, closed.Close(t.Context(), s.account), problem.Unavailable)
		if err := closed.Sync(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		closed.Run(t.Context()) // ends at once
	})
}
