package billing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/customer"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestSubscribe(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		address := check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		check.MustTrue(t, strings.HasPrefix(address, "https://checkout.stripe.test/"), "got %q, want the address of a checkout", address)
		wantForm(t, s.fake.only(t, "POST /v1/customers"), map[string]string{
			"email": owner, "metadata[account]": fmt.Sprint(s.account.ID),
		})
		wantForm(t, s.fake.only(t, "GET /v1/subscriptions"), map[string]string{
			"customer": "cus_1", "status": "all", "expand[0]": "data.latest_invoice",
		})
		wantForm(t, s.fake.only(t, "GET /v1/checkout/sessions"), map[string]string{"customer": "cus_1", "status": "open"})
		checkout := s.fake.only(t, "POST /v1/checkout/sessions")
		wantForm(t, checkout, map[string]string{
			"mode": "subscription", "locale": "en", "customer": "cus_1", "client_reference_id": fmt.Sprint(s.account.ID),
			"line_items[0][price]": priceID, "line_items[0][quantity]": "1",
			"automatic_tax[enabled]": "true", "tax_id_collection[enabled]": "true", "billing_address_collection": "required",
			"customer_update[address]": "auto", "customer_update[name]": "auto",
			"subscription_data[metadata][account]": fmt.Sprint(s.account.ID),
			"success_url":                          publicURL + "/en/account/plan/done", "cancel_url": publicURL + "/en/account/plan",
		})
		check.Equal(t, len(s.fake.requests("GET /v1/prices")), 0)
		row := check.Try(s.Customer(t.Context(), s.account)).OK(t)
		check.MustTrue(t, row != nil, "got %v, want cus_1", row)
		check.Equal(t, row.ID, "cus_1")
		check.Equal(t, row.Email, owner)
		s.wantPlan(auth.Developer) // not paid yet
	})
}

func wantForm(t *testing.T, request call, want map[string]string) {
	t.Helper()
	for field, value := range want {
		check.Equal(t, request.form.Get(field), value, "%s %s: %s", request.method, request.path, field)
	}
	check.Equal(t, len(request.form), len(want), "%s %s: fields", request.method, request.path)
}

// Concurrent calls return the same checkout of one customer.
func TestSubscribeConcurrently(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.holdResponses("POST /v1/customers", 2)
		addresses := make([]string, 2)
		var both sync.WaitGroup
		for i := range addresses {
			both.Go(func() {
				address, err := s.Subscribe(t.Context(), s.account)
				check.Equal(t, err, nil)
				addresses[i] = address
			})
		}
		both.Wait()
		s.wantCustomers(1)
		check.Equal(t, addresses[0], addresses[1], "checkouts: %q", addresses)
	})
}

// holdResponses delays responses to a request until it was received many times.
func (s *fixture) holdResponses(what string, many int) {
	var mu sync.Mutex
	received, all := 0, make(chan struct{})
	s.fake.onRequest(func(request string) {
		if request != what {
			return
		}
		mu.Lock()
		if received++; received == many {
			close(all)
		}
		mu.Unlock()
		<-all
	})
}

func (s *fixture) wantCustomers(want int) {
	s.t.Helper()
	n := check.Try(s.Store.Write.Customer.Query().Where(customer.AccountID(s.account.ID)).Count(s.t.Context())).OK(s.t)
	check.Equal(s.t, n, want)
}

// If Stripe has created two customers, only one is used.
func TestSubscribeWithTwoIdempotencyKeys(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.holdResponses("POST /v1/customers", 2)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				_, err := s.Subscribe(t.Context(), s.account)
				check.Equal(t, err, nil)
			})
			for len(s.fake.requests("POST /v1/customers")) == 0 { // until the first request has been sent
				time.Sleep(time.Millisecond)
			}
			s.wait(61 * time.Second)
		}
		both.Wait()
		s.wantCustomers(1)
	})
}

func TestSubscribeReusesOpenCheckout(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.fake.sessions = []map[string]any{{"status": "open", "url": ""}, {"status": "open", "url": "https://checkout.stripe.test/left-open"}}
		address := check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		check.Equal(t, address, "https://checkout.stripe.test/left-open", "want an address")
		check.Equal(t, len(s.fake.requests("POST /v1/checkout/sessions")), 0)
	})
}

// A subscription that is found is stored, because its event may be late.
func TestSubscribeTwice(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		_, err := s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.wantPlan(auth.Pro)
		check.Equal(t, len(s.fake.requests("POST /v1/checkout/sessions")), 0)
	})
}

func wantProblem(t *testing.T, err error, code problem.Code) {
	t.Helper()
	var p *problem.Problem
	check.MustTrue(t, errors.As(err, &p), "got %v, want %s", err, code)
	check.Equal(t, p.Code, code)
}

// All pages of a list of subscriptions are read.
func TestManySubscriptions(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		var all []subscription
		for range 21 {
			all = append(all, s.started(stripe.SubscriptionStatusCanceled))
		}
		all[20].status = stripe.SubscriptionStatusActive
		s.sendChange(stripe.EventTypeCustomerSubscriptionCreated, all...)
		s.wantPlan(auth.Pro)
		check.Equal(t, len(s.fake.requests("GET /v1/subscriptions")), 3, "pages read")
	})
}

func TestSync(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		check.OK(t, s.Sync(t.Context(), s.account)) // not a customer yet
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		check.OK(t, s.Sync(t.Context(), s.account))
		s.wantPlan(auth.Pro)
		s.fake.set("cus_1")
		var synced []string
		check.OK(t, s.SyncAll(t.Context(), func(row *ent.Customer) { synced = append(synced, row.ID+row.Status+row.Edges.Account.Email) }))
		check.Must(t, len(synced), 1, synced)
		check.Equal(t, synced[0], "cus_1"+owner)
		s.wantPlan(auth.Developer)
	})
}

// Without a secret key, billing is disabled.
func TestDisabled(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		closed := New(Config{Store: s.Store, Log: s.Log})
		check.True(t, !closed.Enabled(), "got billing enabled, want it disabled")
		_, err := closed.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.NotFound)
		_, err = closed.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.NotFound)
		_, _, err = closed.SetUpPrice(t.Context())
		wantProblem(t, err, problem.BadInput)
		_, _, err = closed.SetUpPortal(t.Context())
		wantProblem(t, err, problem.BadInput)
		wantProblem(t, closed.SyncAll(t.Context(), nil), problem.BadInput)
		check.Equal(t, closed.Cancel(t.Context(), s.account), nil)
		s.subscribed()
		wantProblem(t, closed.Cancel(t.Context(), s.account), problem.Unavailable)
		check.Equal(t, closed.Sync(t.Context(), s.account), nil)
		closed.Run(t.Context()) // returns immediately
	})
}

// saved is a portal configuration that was saved in Stripe's dashboard.
func saved() map[string]any { return map[string]any{"id": "bpc_saved", "is_default": true} }

func TestManage(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.customer()
		s.fake.pages = []map[string]any{saved()}
		want := map[string]string{"customer": "cus_1", "return_url": publicURL + "/en/account/plan/back"}
		check.Try(s.Manage(t.Context(), s.account)).OK(t) // with the default configuration, from Stripe's dashboard
		wantForm(t, s.fake.only(t, "POST /v1/billing_portal/sessions"), want)
		_, created, err := s.SetUpPortal(t.Context())
		check.OK(t, err)
		check.Must(t, created, true)
		address := check.Try(s.Manage(t.Context(), s.account)).OK(t)
		check.True(t, strings.HasPrefix(address, "https://"), "got %q, want an address", address)
		want["configuration"] = "bpc_created"
		wantForm(t, s.fake.requests("POST /v1/billing_portal/sessions")[1], want)
	})
}

// A new Stripe account has no billing portal until it is set up.
func TestManageBeforeSetUp(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		text := problem.Of(err).Message
		s.wantNoInternalText(text)
		check.Lacks(t, text, "billing setup")
		check.Contains(t, s.log.String(), "run palmares billing setup", "log")
	})
}

// A restricted key may not read the configurations that it can use.
func TestManageWithARestrictedKey(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.pages = []map[string]any{saved()}
		s.fake.forbidden = "GET /v1/billing_portal/configurations"
		check.Try(s.Manage(t.Context(), s.account)).OK(t)
		s.fake.forbidden = "POST /v1/billing_portal/sessions"
		s.fake.pages = nil
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.Internal)
		check.Lacks(t, s.log.String(), "run palmares billing setup", "instructions that do not help in the log")
	})
}

func TestSetUpPortal(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		for _, want := range []bool{true, false} { // created once, then found
			id, created, err := s.SetUpPortal(t.Context())
			check.OK(t, err)
			check.Must(t, created, want)
			check.Must(t, id, "bpc_created")
		}
		wantForm(t, s.fake.only(t, "POST /v1/billing_portal/configurations"), map[string]string{
			"features[payment_method_update][enabled]": "true", "features[invoice_history][enabled]": "true",
			"features[subscription_cancel][enabled]": "true", "features[subscription_cancel][mode]": "at_period_end",
			"features[customer_update][enabled]":            "true",
			"features[customer_update][allowed_updates][0]": "address", "features[customer_update][allowed_updates][1]": "tax_id",
			"metadata[made_by]": "palmares billing setup",
		})
		wantForm(t, s.fake.requests("GET /v1/billing_portal/configurations")[0], map[string]string{"active": "true"})
	})
}

// A customer that was deleted at Stripe without an event is unlinked.
func TestManageDeletedCustomer(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.fake.pages = []map[string]any{saved()}
		s.fake.deleteObject("cus_1")
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.BadInput)
		s.wantNoInternalText(problem.Of(err).Message)
		s.wantPlan(auth.Developer)
		s.wantNewCustomer()
	})
}

// An account can cause only a limited number of calls.
func TestCallLimit(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.pages = []map[string]any{saved()}
		for range maxCallsPerMinute / 2 {
			check.Try(s.Manage(t.Context(), s.account)).OK(t)
			check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		}
		_, err := s.Manage(t.Context(), s.account)
		wantProblem(t, err, problem.TooMany)
		_, err = s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.TooMany)
		check.Equal(t, len(s.fake.requests("POST /v1/billing_portal/sessions")), maxCallsPerMinute/2, "calls")
		check.Equal(t, s.count(&ent.Account{ID: s.account.ID + 1}), nil, "another account")
		s.wait(time.Minute)
		_, err = s.Manage(t.Context(), s.account)
		check.Equal(t, err, nil, "a minute later")
	})
}

func TestCancel(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		check.OK(t, s.Cancel(t.Context(), s.account)) // not a customer yet
		s.customer()
		s.fake.sessions = []map[string]any{{"id": "cs_open", "status": "open"}, {"id": "cs_paid", "status": "complete"}}
		// A checkout that cannot be closed could still be paid, so the account is not deleted.
		s.fake.forbidden = "POST /v1/checkout/sessions/cs_open/expire"
		wantProblem(t, s.Cancel(t.Context(), s.account), problem.Internal)
		wantForm(t, s.fake.only(t, "GET /v1/checkout/sessions"), map[string]string{"customer": "cus_1", "status": "open"})
		s.fake.forbidden = ""
		live, over := s.subscribed(), s.started(stripe.SubscriptionStatusCanceled)
		s.fake.set("cus_1", live, over)
		check.OK(t, s.Cancel(t.Context(), s.account))
		s.fake.only(t, "DELETE /v1/subscriptions/"+live.id)
		check.Equal(t, len(s.fake.requests("DELETE /v1/subscriptions/"+over.id)), 0)
		check.Equal(t, s.fake.session("cs_open")["status"], "expired")
		check.Equal(t, len(s.fake.requests("POST /v1/checkout/sessions/cs_paid/expire")), 0)
		check.Equal(t, s.emails(), 0, "emails, because there will be one about the account")
		check.OK(t, s.accounts.Delete(t.Context(), s.account))
		row := s.row()
		check.Equal(t, row.AccountID, nil)
		check.Equal(t, row.Status, "canceled")
		check.Equal(t, row.Email, "")
		// A change of address that is being sent to Stripe does not restore it.
		s.reconcile(t.Context())
		stale := s.row()
		stale.Edges.Account = s.account
		check.OK(t, s.updateEmail(t.Context(), stale))
		check.Equal(t, s.row().Email, "", "address")
	})
}

// A checkout may be paid, and a subscription may end, just before Cancel would do it.
func TestCancelIsOvertaken(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		ending, bought := s.subscribed(), s.started(stripe.SubscriptionStatusActive)
		s.fake.sessions = []map[string]any{{"id": "cs_paid", "status": "open"}, {"id": "cs_open", "status": "open"}}
		s.fake.onRequest(func(what string) {
			s.fake.mu.Lock()
			defer s.fake.mu.Unlock()
			switch what {
			case "GET /v1/checkout/sessions":
				s.fake.session("cs_paid")["status"] = "complete"
				s.fake.subscriptions["cus_1"] = []subscription{ending, bought}
			case "GET /v1/subscriptions":
				s.fake.end(ending.id)
			}
		})
		check.OK(t, s.Cancel(t.Context(), s.account))
		for id, status := range s.fake.statuses("cus_1") {
			check.True(t, !Live(status), "got subscription %s %s, want it canceled", id, status)
		}
		s.fake.only(t, "POST /v1/checkout/sessions/cs_open/expire")
		s.wantPlan(auth.Developer)
	})
}

// An account can be deleted while an event changes its plan. Both lock the account
// and the customer, which must not end in a deadlock.
func TestDeleteDuringAnEvent(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	updated, proceed := make(chan struct{}), make(chan struct{})
	var event atomic.Bool // the event is being handled
	cfg.OnStatement = func(_ context.Context, _, statement string) func(error) {
		return func(error) {
			if strings.HasPrefix(statement, `UPDATE "customers"`) && event.CompareAndSwap(true, false) {
				close(updated)
				<-proceed
			}
		}
	}
	s := newFixture(t, testkit.Open(t, cfg))
	s.customer()
	s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
	code, deleted := make(chan int), make(chan error)
	event.Store(true)
	go func() { code <- s.send(s.event(stripe.EventTypeCustomerSubscriptionCreated)).Code }()
	<-updated
	go func() { deleted <- s.accounts.Delete(t.Context(), s.account) }()
	wait.Until(t, "the deletion waits for a lock", func() (waiting bool) {
		query := "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		check.OK(t, s.Store.Pools()["reader"].QueryRowContext(t.Context(), query).Scan(&waiting))
		return waiting
	})
	close(proceed)
	check.Equal(t, <-code, http.StatusOK, "status")
	check.Equal(t, <-deleted, nil)
	s.reconcile(t.Context())
	row := s.row()
	check.Equal(t, row.AccountID, nil)
	check.True(t, !Live(row.Status), "got customer %v, want it canceled and without an account", row)
}

// A checkout is paid after its account was deleted.
func TestPaidForADeletedAccount(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		check.OK(t, s.accounts.Delete(t.Context(), s.account))
		sub := s.started(stripe.SubscriptionStatusActive)
		s.fake.set("cus_1", sub)
		s.wantStatus(s.send(s.event(stripe.EventTypeCheckoutSessionCompleted)), http.StatusOK)

		s.fake.failWith(internalError)
		s.reconcile(t.Context())
		check.Must(t, s.row().Status, "active", "status")
		s.fake.recover()
		for range 2 {
			s.reconcile(t.Context())
		}
		s.fake.only(t, "DELETE /v1/subscriptions/"+sub.id)
		row := s.row()
		check.Equal(t, row.AccountID, nil)
		check.Equal(t, row.Status, "canceled")
	})
}
