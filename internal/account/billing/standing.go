package billing

import (
	"slices"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
)

// Grace is how long a customer whose payment failed keeps Pro.
const Grace = 7 * 24 * time.Hour

// The words of Stripe's that we act on.
const (
	StatusActive   = string(stripe.SubscriptionStatusActive)
	StatusTrialing = string(stripe.SubscriptionStatusTrialing)
	StatusPastDue  = string(stripe.SubscriptionStatusPastDue)
)

// standing is a subscription as Stripe tells it.
type standing struct {
	subscription string
	status       string
	periodEnd    *time.Time // or when it ends, where that is another day
	cancels      bool
	pastDueSince *time.Time
}

// plan is what a subscription is worth at a moment.
func plan(status string, pastDueSince *time.Time, now time.Time) auth.Plan {
	inGrace := status == StatusPastDue && (pastDueSince == nil || now.Before(pastDueSince.Add(Grace)))
	if paid(status) || inGrace {
		return auth.Pro
	}
	return auth.Developer
}

// paid tells whether nothing is owed.
func paid(status string) bool { return status == StatusActive || status == StatusTrialing }

// PlanOf is what a customer has paid for; nobody's is Developer.
func PlanOf(row *ent.Customer, now time.Time) auth.Plan {
	if row == nil {
		return auth.Developer
	}
	return plan(row.Status, row.PastDueSince, now)
}

// ended are the words for a subscription that costs nobody anything.
var ended = []string{"", string(stripe.SubscriptionStatusCanceled), string(stripe.SubscriptionStatusIncompleteExpired)}

// Live tells whether a subscription goes on by itself, paid or not.
func Live(status string) bool { return !slices.Contains(ended, status) }

// ranks put the subscription that counts first, where a customer has several.
var ranks = map[stripe.SubscriptionStatus]int{
	stripe.SubscriptionStatusActive:     1,
	stripe.SubscriptionStatusTrialing:   1,
	stripe.SubscriptionStatusPastDue:    2,
	stripe.SubscriptionStatusUnpaid:     3,
	stripe.SubscriptionStatusPaused:     3,
	stripe.SubscriptionStatusIncomplete: 4,
}

func rank(s *stripe.Subscription) int {
	if rank, known := ranks[s.Status]; known {
		return rank
	}
	return 9
}

// best is the subscription that counts: the one worth most, of these the
// newest.
func best(all []*stripe.Subscription) *stripe.Subscription {
	var found *stripe.Subscription
	for _, s := range all {
		if found == nil || rank(s) < rank(found) || rank(s) == rank(found) && s.Created > found.Created {
			found = s
		}
	}
	return found
}

// stand reads a subscription; nil for none.
func stand(s *stripe.Subscription) standing {
	if s == nil {
		return standing{}
	}
	at := standing{subscription: s.ID, status: string(s.Status), cancels: s.CancelAtPeriodEnd || s.CancelAt > 0}
	if s.Items != nil {
		for _, item := range s.Items.Data {
			end := time.Unix(item.CurrentPeriodEnd, 0).UTC()
			if item.CurrentPeriodEnd > 0 && (at.periodEnd == nil || end.After(*at.periodEnd)) {
				at.periodEnd = &end
			}
		}
	}
	if s.CancelAt > 0 {
		end := time.Unix(s.CancelAt, 0).UTC()
		at.periodEnd = &end
	}
	if at.status == StatusPastDue && s.LatestInvoice != nil {
		// The invoice that was not paid.
		since := s.LatestInvoice.Created
		if moments := s.LatestInvoice.StatusTransitions; moments != nil && moments.FinalizedAt > 0 {
			since = moments.FinalizedAt
		}
		if since > 0 {
			then := time.Unix(since, 0).UTC()
			at.pastDueSince = &then
		}
	}
	return at
}
