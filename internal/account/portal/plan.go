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

// planPage is the data of the page of the plan.
type planPage struct {
	Pro        bool
	ByHand     bool // an operator has set it
	Open       bool // Pro can be subscribed to
	Subscribed bool // there is a subscription, paid or not
	Manageable bool // there is something to see at the payment service
	RenewsAt   *time.Time
	EndsAt     *time.Time
	PaymentDue *time.Time // until when Pro goes on though a payment failed
	Unpaid     bool       // a payment failed and Pro has ended
	Waiting    bool       // the first payment is not through
	Confirming bool       // who comes from paying is not Pro yet
	Euros      int
	Developer  auth.Terms
	ProTerms   auth.Terms
}

// paying is what somebody has done who comes back to the page of the plan.
const paying = "paying"

func (p *Portal) showPlan(v *visit) error { return p.showPlanWith(v, nil) }

func (p *Portal) showPlanWith(v *visit, wrong error) error {
	row, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := planPage{
		Pro: auth.Plan(v.account.Plan) == auth.Pro, ByHand: v.account.PlanByHand, Open: p.Billing.Open(), Euros: billing.MonthlyEuros,
		Developer: auth.Developer.Terms(), ProTerms: auth.Pro.Terms(),
	}
	if row != nil {
		data.Subscribed, data.Manageable = billing.Live(row.Status), true
		data.PaymentDue = paymentDue(v.account, row, p.now())
		data.Unpaid = data.Subscribed && !data.Pro && !data.ByHand
		data.Waiting = row.Status == "incomplete" && !data.ByHand
		data.Confirming = v.FormValue("done") == paying && !data.Subscribed && !data.Pro && !data.ByHand
		switch {
		case row.Status != billing.StatusActive && row.Status != billing.StatusTrialing:
		case row.Cancels:
			data.EndsAt = row.PeriodEnd
		default:
			data.RenewsAt = row.PeriodEnd
		}
	}
	return p.show(v, "plan", data, wrong)
}

// paymentDue is until when Pro goes on though a payment failed, if one did and
// it is the payment that Pro depends on.
func paymentDue(acc *ent.Account, row *ent.Customer, now time.Time) *time.Time {
	if row == nil || acc.PlanByHand || row.Status != billing.StatusPastDue || row.PastDueSince == nil || billing.PlanOf(row, now) != auth.Pro {
		return nil
	}
	until := row.PastDueSince.Add(billing.Grace)
	return &until
}

func (p *Portal) subscribe(v *visit) error {
	switch {
	case v.account.PlanByHand && auth.Plan(v.account.Plan) == auth.Pro:
		return p.showPlanWith(v, problem.New(problem.BadInput, "Your plan was set by us: there is nothing to pay."))
	case v.account.PlanByHand:
		return p.showPlanWith(v, problem.New(problem.BadInput, "Your plan was set by us, so paying would not change it: write to us."))
	}
	return p.leave(v, p.Billing.Subscribe)
}

func (p *Portal) managePlan(v *visit) error { return p.leave(v, p.Billing.Manage) }

// leave sends somebody to the payment service.
func (p *Portal) leave(v *visit, to func(context.Context, *ent.Account) (string, error)) error {
	address, err := to(v.Context(), v.account)
	if err == nil {
		return p.redirect(v, address)
	}
	// What was found out on the way may have changed the plan.
	if account, failed := p.sessions.Find(v.Context(), p.cookie(v, sessionCookie)); failed == nil && account != nil {
		v.account = account
	}
	return p.showPlanWith(v, err)
}

// backFromPaying reads what has come of it: the news of it may be later than
// the customer. Where it cannot be read now, or is not Pro yet, it was paid all
// the same.
func (p *Portal) backFromPaying(v *visit) error {
	read, err := p.readPlan(v)
	if err != nil {
		return err
	}
	row, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	if p.Billing.Open() && (!read || billing.PlanOf(row, p.now()) != auth.Pro) {
		return p.redirect(v, billing.PlanPath+"?done="+paying)
	}
	return p.redirect(v, billing.PlanPath)
}

// backFromManaging shows what was changed there.
func (p *Portal) backFromManaging(v *visit) error {
	if _, err := p.readPlan(v); err != nil {
		return err
	}
	return p.redirect(v, billing.PlanPath)
}

// readPlan reads the subscription again. Only our own database is worth an
// error: Stripe may be read another time.
func (p *Portal) readPlan(v *visit) (read bool, err error) {
	err = p.Billing.Sync(v.Context(), v.account)
	var fault *store.Fault
	switch {
	case errors.As(err, &fault):
		return false, err
	case err != nil:
		p.Log.Warn("a subscription could not be read as its owner came back from Stripe", "cause", cmp.Or(errors.Unwrap(err), err))
		return false, nil
	}
	p.forgetKeys(v)
	return true, nil
}
