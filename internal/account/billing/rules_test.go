package billing

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// What a plan includes is what /pricing promises.
func TestPlanTerms(t *testing.T) {
	for plan, want := range map[auth.Plan]auth.Terms{
		auth.Anonymous: {DailyQuota: 100, Streams: 5},
		auth.Developer: {Name: "Developer", Tier: "free", DailyQuota: 1000, Keys: 3, Streams: 20, Downloads: 2, SavedQueries: 5, Embeddings: true},
		auth.Pro:       {Name: "Pro", Tier: "pro", Keys: 10, Streams: 100, Downloads: 2, SavedQueries: 50, Embeddings: true, Webhooks: true},
		"unknown":      {DailyQuota: 100, Streams: 5},
	} {
		check.Equal(t, plan.Terms(), want, plan)
	}
}

func TestPlanOf(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	overdue := func(since time.Time) *ent.Customer { return &ent.Customer{Status: StatusPastDue, PastDueSince: &since} }
	for name, c := range map[string]struct {
		row  *ent.Customer
		want auth.Plan
	}{
		"no customer":           {nil, auth.Developer},
		"no subscription":       {&ent.Customer{}, auth.Developer},
		"active":                {&ent.Customer{Status: StatusActive}, auth.Pro},
		"on trial":              {&ent.Customer{Status: StatusTrialing}, auth.Pro},
		"canceled":              {&ent.Customer{Status: "canceled"}, auth.Developer},
		"paused":                {&ent.Customer{Status: "paused"}, auth.Developer},
		"incomplete":            {&ent.Customer{Status: "incomplete"}, auth.Developer},
		"unknown":               {&ent.Customer{Status: "unknown_status"}, auth.Developer},
		"unpaid":                {&ent.Customer{Status: "unpaid"}, auth.Developer},
		"unpaid for a while":    {&ent.Customer{Status: "unpaid", PastDueSince: &now}, auth.Developer},
		"overdue":               {&ent.Customer{Status: StatusPastDue}, auth.Pro},
		"at the end of grace":   {overdue(now.Add(-7*24*time.Hour + 1)), auth.Pro},
		"at the end of a week":  {overdue(now.Add(-7 * 24 * time.Hour)), auth.Developer},
		"overdue in the future": {overdue(now.Add(time.Hour)), auth.Pro},
	} {
		check.Equal(t, PlanOf(c.row, now), c.want, name)
	}
	for status, want := range map[string]bool{"": false, "canceled": false, "incomplete_expired": false, "active": true, "past_due": true, "unpaid": true, "paused": true, "incomplete": true} {
		check.Equal(t, Live(status), want, "%q: %t", status, !want)
	}
}

// A debit may be returned long after its invoice, and its event may be lost.
func TestGraceStart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	before, later := now.Add(-8*24*time.Hour), now.Add(time.Hour)
	for name, c := range map[string]struct {
		row      ent.Customer
		invoiced *time.Time
		want     time.Time
	}{
		"paid before":        {ent.Customer{Status: StatusActive}, &before, now},
		"on trial before":    {ent.Customer{Status: StatusTrialing}, &before, now},
		"second attempt":     {ent.Customer{Status: StatusPastDue, PastDueSince: &before}, &now, before},
		"never paid":         {ent.Customer{}, &before, before},
		"unpaid for a while": {ent.Customer{Status: "unpaid"}, &before, before},
		"no invoice":         {ent.Customer{}, nil, now},
		"dated ahead":        {ent.Customer{}, &later, now},
	} {
		check.Equal(t, *graceStart(&c.row, c.invoiced, now), c.want, name)
	}
}

// The most valuable subscription counts, and of these the newest.
func TestStateOfSubscriptions(t *testing.T) {
	subscription := func(id string, status stripe.SubscriptionStatus, created int64) *stripe.Subscription {
		return &stripe.Subscription{ID: id, Status: status, Created: created}
	}
	order := []stripe.SubscriptionStatus{"canceled", "incomplete", "unpaid", "past_due", "active"}
	for i, status := range order[1:] {
		better, worse := subscription("better", status, 1), subscription("worse", order[i], 2)
		for _, all := range [][]*stripe.Subscription{{better, worse}, {worse, better}} {
			got := stateOf(all)
			check.Equal(t, got.Subscription, "better", order[i])
			check.Equal(t, got.Status, string(status), order[i])
		}
	}
	for _, pair := range [][2]stripe.SubscriptionStatus{{"active", "trialing"}, {"trialing", "active"}, {"unpaid", "paused"}, {"paused", "unpaid"}} {
		got := stateOf([]*stripe.Subscription{subscription("older", pair[0], 1), subscription("newer", pair[1], 2)})
		check.Equal(t, got.Subscription, "newer", pair)
	}
	got := stateOf(nil)
	check.Equal(t, got.Subscription, "")
	check.Equal(t, got.Status, "")

	s := subscription("a", "past_due", 1)
	s.Items = &stripe.SubscriptionItemList{Data: []*stripe.SubscriptionItem{{CurrentPeriodEnd: 30}, {CurrentPeriodEnd: 40}, {CurrentPeriodEnd: 20}}}
	s.LatestInvoice = &stripe.Invoice{Created: 10}
	const none = -1
	want := func(what string, cancels bool, end, overdue int64) {
		t.Helper()
		seconds := func(at *time.Time) int64 {
			if at == nil {
				return none
			}
			return at.Unix()
		}
		got := stateOf([]*stripe.Subscription{s})
		check.Equal(t, got.Cancels, cancels, "%s, %v and %v", what, got.PeriodEnd, got.PastDueSince)
		check.Equal(t, seconds(got.PeriodEnd), end, "%s, %v and %v", what, got.PeriodEnd, got.PastDueSince)
		check.Equal(t, seconds(got.PastDueSince), overdue, "%s, %v and %v", what, got.PeriodEnd, got.PastDueSince)
	}
	want("overdue", false, 40, 10)
	s.LatestInvoice.StatusTransitions = &stripe.InvoiceStatusTransitions{FinalizedAt: 12}
	want("overdue since it was finalized", false, 40, 12)
	s.LatestInvoice.StatusTransitions.FinalizedAt = 0
	want("overdue and not finalized", false, 40, 10)
	s.CancelAtPeriodEnd = true
	want("canceled at the end of its period", true, 40, 10)
	s.CancelAtPeriodEnd, s.CancelAt = false, 35
	want("canceled on a day", true, 35, 10)
	s.Status, s.CancelAt = "active", 0
	want("paid", false, 40, none)
	s.Status, s.LatestInvoice, s.Items = "past_due", nil, nil
	want("unknown", false, none, none)
}

// FuzzEvent checks that an event without the signature of its body is rejected before
// anything is read, and that the customer of an event is the one in its JSON.
func FuzzEvent(f *testing.F) {
	payload := eventOf("evt_1", stripe.EventTypeCustomerSubscriptionUpdated, "cus_1")
	f.Add(payload, signed(payload, "whsec_other", time.Now()))
	f.Add(eventAbout("evt_2", stripe.EventTypeCustomerDeleted, map[string]any{"object": "customer", "id": "cus_2"}), "t=1,v1=00")
	f.Add([]byte(`{"id":"evt_3","data":{"object":{"customer":{"id":"cus_3"}}}}`), "t=99999999999999999999,t=-1")
	f.Add([]byte(`{"id":"evt_4","data":{"object":{"customer":{"id":4},"object":[]}}}`), "")
	b := &Billing{Config: Config{WebhookSecret: webhookSecret}} // no store: reading it would panic
	f.Fuzz(func(t *testing.T, payload []byte, signature string) {
		r := httptest.NewRequest(http.MethodPost, EventsPath, bytes.NewReader(payload))
		r.Header.Set("Stripe-Signature", signature)
		var p *problem.Problem
		err := b.receive(r)
		check.True(t, errors.As(err, &p) && (p.Code.Status() == http.StatusBadRequest || p.Code == problem.TooLarge), "%q with %q: got %v, want a forged event rejected", payload, signature, err)
		var event stripe.Event
		var plain struct {
			Data *struct{ Object map[string]any }
		}
		if json.Unmarshal(payload, &event) != nil || json.Unmarshal(payload, &plain) != nil {
			return
		}
		var want any
		if plain.Data != nil {
			object := plain.Data.Object
			want = object["customer"]
			if expanded, ok := want.(map[string]any); ok {
				want = expanded["id"]
			}
			if object["object"] == "customer" {
				want = object["id"]
			}
		}
		if want, _ := want.(string); customerOf(&event) != want {
			t.Errorf("%s: got customer %q, want %q", payload, customerOf(&event), want)
		}
	})
}
