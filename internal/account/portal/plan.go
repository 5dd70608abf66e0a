package portal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

type planPage struct {
	Pro          bool
	Manual       bool // the plan was set by an operator
	CanSubscribe bool
	Subscribed   bool // there is a subscription, paid or not
	Manageable   bool // there is something to manage at Stripe
	RenewsAt     *time.Time
	EndsAt       *time.Time
	PaymentDue   *time.Time
	Unpaid       bool // a payment failed and Pro has ended
	Incomplete   bool // the first payment is not complete
	Confirming   bool // back from the checkout, but not Pro yet
	Euros        int
}

const paying = "paying" // value of done after the checkout

func (p *Portal) showPlan(v *visit) error {
	customer, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := planPage{
		Pro: auth.Plan(v.account.Plan) == auth.Pro, Manual: v.account.ManualPlan, CanSubscribe: p.Billing.Enabled(), Euros: billing.MonthlyEuros,
	}
	if customer != nil {
		data.Subscribed, data.Manageable = billing.Live(customer.Status), true
		data.PaymentDue = paymentDue(v.account, customer, p.now())
		data.Unpaid = data.Subscribed && !data.Pro && !data.Manual
		data.Incomplete = customer.Status == "incomplete" && !data.Manual
		data.Confirming = v.FormValue("done") == paying && !data.Subscribed && !data.Pro && !data.Manual
		switch {
		case customer.Status != billing.StatusActive && customer.Status != billing.StatusTrialing:
		case customer.Cancels:
			data.EndsAt = customer.PeriodEnd
		default:
			data.RenewsAt = customer.PeriodEnd
		}
	}
	return p.show(v, "plan", data)
}

// paymentDue returns when Pro ends because a payment failed, or nil.
func paymentDue(acc *ent.Account, customer *ent.Customer, now time.Time) *time.Time {
	if customer == nil || acc.ManualPlan || customer.Status != billing.StatusPastDue || customer.PastDueSince == nil || billing.PlanOf(customer, now) != auth.Pro {
		return nil
	}
	return new(customer.PastDueSince.Add(billing.Grace))
}

func (p *Portal) subscribe(v *visit) error {
	switch {
	case v.account.ManualPlan && auth.Plan(v.account.Plan) == auth.Pro:
		return p.showPlan(v.rejected(problem.New(problem.BadInput, "We set your plan manually, so there is nothing to pay.")))
	case v.account.ManualPlan:
		return p.showPlan(v.rejected(problem.New(problem.BadInput, "We set your plan manually, so a subscription would not change it. Contact us to upgrade.")))
	}
	return p.redirectToStripe(v, p.Billing.Subscribe)
}

func (p *Portal) manageBilling(v *visit) error { return p.redirectToStripe(v, p.Billing.Manage) }

func (p *Portal) redirectToStripe(v *visit, open func(context.Context, *ent.Account) (string, error)) error {
	stripeURL, err := open(v.Context(), v.account)
	if err == nil {
		return p.redirect(v, stripeURL)
	}
	// The call may have found that the plan has changed.
	if account, err := p.sessionAccount(v.Request); err == nil && account != nil {
		v.account = account
	}
	return p.showPlan(v.rejected(err))
}

// returnFromCheckout reads the subscription, because Stripe's event may arrive
// later than the customer.
func (p *Portal) returnFromCheckout(v *visit) error {
	synced, err := p.syncPlan(v)
	customer, customerErr := p.Billing.Customer(v.Context(), v.account)
	if err := cmp.Or(err, customerErr); err != nil {
		return err
	}
	if p.Billing.Enabled() && (!synced || billing.PlanOf(customer, p.now()) != auth.Pro) {
		return p.redirect(v, billing.PlanPath+"?done="+paying)
	}
	return p.redirect(v, billing.PlanPath)
}

func (p *Portal) returnFromManaging(v *visit) error {
	if _, err := p.syncPlan(v); err != nil {
		return err
	}
	return p.redirect(v, billing.PlanPath)
}

// syncPlan reads the subscription from Stripe. It returns only database errors:
// Stripe can be read again later.
func (p *Portal) syncPlan(v *visit) (synced bool, err error) {
	err = p.Billing.Sync(v.Context(), v.account)
	var databaseErr *store.Error
	switch {
	case errors.As(err, &databaseErr):
		return false, err
	case err != nil:
		p.Log.Warn("reading the subscription from Stripe failed", "cause", cmp.Or(errors.Unwrap(err), err))
		return false, nil
	}
	p.Keyring.ForgetAccount(v.account.ID)
	return true, nil
}
