package billing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Whatever the order and repetition of events, an account has the plan that its
// subscriptions at Stripe give, and a deleted account pays for nothing.
func TestRandomLives(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		seed := testkit.Seed(t)
		for number := range 3 {
			l := newLife(s, number, seed+uint64(number))
			for range 4 {
				for range 3 {
					l.step()
				}
				l.settle()
			}
			l.replayEvents()
			l.endGrace()
			l.deleteAccount()
		}
	})
}

// life is a random history of an account at Stripe. Meanwhile, two servers receive its
// events: late, repeatedly, in any order and several at once.
type life struct {
	*fixture
	seed     uint64
	random   *rand.Rand
	servers  []*Billing
	account  *ent.Account
	customer string
	deleted  bool     // the customer was deleted at Stripe
	events   int      // number of events so far
	pending  [][]byte // events that Stripe has not delivered yet
	sent     [][]byte

	handling sync.WaitGroup
	inFlight int // deliveries since handling was last awaited

	mu       sync.Mutex
	failed   [][]byte      // events that Stripe delivers again
	finished int           // deliveries of those that were started
	release  chan struct{} // closed when held responses are sent
	holding  bool          // whether further responses are held
	held     int
}

func newLife(s *fixture, number int, seed uint64) *life {
	s.t.Helper()
	l := &life{fixture: s, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), release: make(chan struct{})}
	for range 2 {
		server := New(s.Config)
		server.foundPrice.Store(new(priceID))
		server.now = s.clock
		l.servers = append(l.servers, server)
	}
	l.account = check.Try(s.accounts.Create(s.t.Context(), fmt.Sprintf("life-%d@example.com", number), auth.Developer)).OK(s.t)
	s.fake.onRequest(l.hold)
	return l
}

// hold delays responses of Stripe, so that the state they contain is outdated when
// they arrive.
func (l *life) hold(request string) {
	l.mu.Lock()
	release, hold := l.release, l.holding && request == reading
	if hold {
		l.held++
	}
	l.mu.Unlock()
	if hold {
		<-release
	}
}

// holdResponses decides whether further responses are held.
func (l *life) holdResponses(hold bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding = hold
}

// finishHandling sends the held responses and waits for all deliveries.
func (l *life) finishHandling() {
	l.holdResponses(false)
	close(l.release)
	l.handling.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, l.failed...)
	l.failed, l.release, l.inFlight, l.finished, l.held = nil, make(chan struct{}), 0, 0, 0
}

func (l *life) server() *Billing { return l.servers[l.random.IntN(len(l.servers))] }

// step changes something at Stripe and delivers some events.
func (l *life) step() {
	l.t.Helper()
	l.wait(time.Minute + time.Duration(l.random.IntN(600))*time.Second)
	switch dice := l.random.IntN(12); {
	case dice < 2 || l.customer == "":
		l.subscribe()
	case dice == 2:
		l.deleteCustomer()
	default:
		l.change()
	}
	l.holdResponses(l.random.IntN(2) == 0)
	if l.random.IntN(8) == 0 { // for a while, Stripe fails
		l.fake.failWith(reject)
		defer l.fake.recover()
	}
	for range l.random.IntN(4) {
		l.deliverAny()
	}
	if l.random.IntN(4) == 0 {
		server := l.server()
		l.handling.Go(func() { _ = server.Sync(context.Background(), l.account) })
	}
}

// subscribe opens a checkout, which is paid, even if another one was paid before.
func (l *life) subscribe() {
	l.t.Helper()
	l.holdResponses(false)
	_, err := l.server().Subscribe(l.t.Context(), l.account)
	check.MustTrue(l.t, err == nil || strings.Contains(err.Error(), "already has a subscription"), "seed %d: %v", l.seed, err)
	row := check.Try(l.Customer(l.t.Context(), l.account)).OK(l.t, "seed %d", l.seed)
	check.MustTrue(l.t, row != nil, "seed %d: got %v, want a customer", l.seed, row)
	l.customer, l.deleted = row.ID, false
	l.pay()
}

func (l *life) pay() {
	paid := l.started([]stripe.SubscriptionStatus{stripe.SubscriptionStatusActive, stripe.SubscriptionStatusTrialing, stripe.SubscriptionStatusIncomplete}[l.random.IntN(3)])
	l.fake.change(l.customer, func(all []subscription) []subscription { return append(slices.Clone(all), paid) })
	l.emit(stripe.EventTypeCheckoutSessionCompleted, stripe.EventTypeCustomerSubscriptionCreated, stripe.EventTypeInvoicePaid)
}

// changes are the statuses that a subscription can get, with the events about them.
var changes = []struct {
	status stripe.SubscriptionStatus
	events []stripe.EventType
}{
	{stripe.SubscriptionStatusActive, []stripe.EventType{stripe.EventTypeInvoicePaid, stripe.EventTypeCustomerSubscriptionUpdated}},
	{stripe.SubscriptionStatusActive, []stripe.EventType{stripe.EventTypeCustomerSubscriptionResumed}},
	{stripe.SubscriptionStatusPastDue, []stripe.EventType{stripe.EventTypeInvoicePaymentFailed, stripe.EventTypeCustomerSubscriptionUpdated}},
	{stripe.SubscriptionStatusUnpaid, []stripe.EventType{stripe.EventTypeInvoicePaymentFailed, stripe.EventTypeCustomerSubscriptionUpdated}},
	{stripe.SubscriptionStatusPaused, []stripe.EventType{stripe.EventTypeCustomerSubscriptionPaused}},
	{stripe.SubscriptionStatusCanceled, []stripe.EventType{stripe.EventTypeCustomerSubscriptionUpdated, stripe.EventTypeCustomerSubscriptionDeleted}},
	{stripe.SubscriptionStatusIncompleteExpired, []stripe.EventType{stripe.EventTypeCustomerSubscriptionUpdated}},
}

// change changes the status of a subscription.
func (l *life) change() {
	to := changes[l.random.IntN(len(changes))]
	l.fake.change(l.customer, func(all []subscription) []subscription {
		all = slices.Clone(all)
		if len(all) > 0 {
			s := &all[l.random.IntN(len(all))]
			s.status, s.invoiced, s.cancels = to.status, l.clock(), l.random.IntN(3) == 0
		}
		return all
	})
	l.emit(to.events...)
}

// deleteCustomer deletes the customer at Stripe, which ends its subscriptions.
func (l *life) deleteCustomer() {
	l.deleted = true
	l.fake.deleteObject(l.customer)
	l.fake.set(l.customer)
	l.emit(stripe.EventTypeCustomerSubscriptionDeleted, stripe.EventTypeCustomerDeleted)
}

func (l *life) emit(types ...stripe.EventType) {
	for _, what := range types {
		l.events++
		l.pending = append(l.pending, eventOf(fmt.Sprintf("evt_life_%d_%d", l.account.ID, l.events), what, l.customer))
	}
}

// takeEvent returns a pending event. Some are delivered again later although the server
// accepts them.
func (l *life) takeEvent() []byte {
	i := l.random.IntN(len(l.pending))
	event := l.pending[i]
	if l.random.IntN(3) > 0 {
		l.pending = slices.Delete(l.pending, i, i+1)
	}
	l.sent = append(l.sent, event)
	return event
}

// deliverAny starts to deliver a pending event.
func (l *life) deliverAny() {
	if l.inFlight >= 4 { // fewer than maxUpdates
		l.finishHandling()
	}
	if len(l.pending) == 0 {
		return
	}
	event, server := l.takeEvent(), l.server()
	l.inFlight++
	l.handling.Go(func() {
		w := deliverTo(context.Background(), server, event, signed(event, webhookSecret, time.Now()))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.finished++
		if w.Code != http.StatusOK {
			l.failed = append(l.failed, event)
		}
	})
}

// deliverAll delivers all pending events.
func (l *life) deliverAll() {
	l.t.Helper()
	for len(l.pending) > 0 {
		event := l.takeEvent()
		l.wantStatus(deliverTo(l.t.Context(), l.server(), event, signed(event, webhookSecret, time.Now())), http.StatusOK)
	}
}

// settle delivers all events, the last ones while earlier ones are still being handled
// with an older state, and compares the account with the state at Stripe.
func (l *life) settle() {
	l.t.Helper()
	l.finishHandling()
	if l.customer == "" {
		return
	}
	l.holdResponses(true)
	l.emit(stripe.EventTypeCustomerSubscriptionUpdated)
	for range 3 {
		l.deliverAny()
	}
	wait.Until(l.t, "the state was read", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.held+l.finished == l.inFlight
	})
	l.holdResponses(false)
	l.change()
	l.deliverAll()
	l.finishHandling()
	l.deliverAll()
	l.wantSame("after all events", stripe.SubscriptionStatusActive, stripe.SubscriptionStatusTrialing, stripe.SubscriptionStatusPastDue)
}

// wantSame expects Pro if a subscription at Stripe has one of the statuses.
func (l *life) wantSame(when string, pro ...stripe.SubscriptionStatus) {
	l.t.Helper()
	atStripe, want := l.fake.statuses(l.customer), auth.Developer
	for _, status := range atStripe {
		if slices.Contains(pro, stripe.SubscriptionStatus(status)) {
			want = auth.Pro
		}
	}
	acc := check.Try(l.Store.Write.Account.Query().Where(account.ID(l.account.ID)).WithCustomer().Only(l.t.Context())).OK(l.t)
	check.Must(l.t, auth.Plan(acc.Plan), want, "seed %d, %s: plan", l.seed, when)
	row := acc.Edges.Customer
	check.MustTrue(l.t, row == nil || row.Status == atStripe[row.Subscription], "seed %d, %s: got %v, want the state at Stripe: %v", l.seed, when, row, atStripe)
}

// replayEvents repeats all events: with their old signatures, which are rejected, as
// Stripe would repeat them, and when they were so long ago that we forgot them.
func (l *life) replayEvents() {
	l.t.Helper()
	for _, event := range l.sent {
		w := l.deliver(l.t.Context(), event, signed(event, webhookSecret, time.Now().Add(-signatureTolerance-time.Minute)))
		check.Must(l.t, w.Code, http.StatusBadRequest, "seed %d: status for an old signature", l.seed)
	}
	for _, forgotten := range []bool{false, true} {
		if forgotten {
			check.Try(l.Store.Write.BillingEvent.Delete().Exec(l.t.Context())).OK(l.t)
		}
		l.random.Shuffle(len(l.sent), func(i, j int) { l.sent[i], l.sent[j] = l.sent[j], l.sent[i] })
		for _, event := range l.sent {
			l.wantStatus(l.send(event), http.StatusOK)
		}
		l.wantSame("after a replay", stripe.SubscriptionStatusActive, stripe.SubscriptionStatusTrialing, stripe.SubscriptionStatusPastDue)
	}
}

// endGrace lets the grace period of a failed payment end.
func (l *life) endGrace() {
	l.t.Helper()
	l.wait(Grace + time.Hour)
	l.reconcile(l.t.Context())
	l.wantSame("after the grace period", stripe.SubscriptionStatusActive, stripe.SubscriptionStatusTrialing)
}

// deleteAccount deletes the account while events arrive. Another checkout is paid
// afterwards.
func (l *life) deleteAccount() {
	l.t.Helper()
	if l.random.IntN(2) == 0 {
		l.subscribe()
	}
	for range 3 {
		l.deliverAny()
	}
	check.OK(l.t, l.server().Cancel(l.t.Context(), l.account), "seed %d", l.seed)
	check.OK(l.t, l.accounts.Delete(l.t.Context(), l.account), "seed %d", l.seed)
	if !l.deleted {
		l.pay()
	}
	l.finishHandling()
	l.deliverAll()
	for range 2 {
		for _, server := range l.servers {
			l.handling.Go(func() { server.reconcile(l.t.Context()) })
		}
		l.handling.Wait()
	}
	for id, status := range l.fake.statuses(l.customer) {
		check.MustTrue(l.t, !Live(status), "seed %d: got subscription %s %s for a deleted account, want it canceled", l.seed, id, status)
	}
	row := check.Try(l.Store.Write.Customer.Get(l.t.Context(), l.customer)).OK(l.t, "seed %d", l.seed)
	check.Must(l.t, row.AccountID, nil, "seed %d", l.seed)
	check.MustTrue(l.t, !Live(row.Status), "seed %d: got %v, want a canceled customer without an account", l.seed, row)
	check.Must(l.t, row.Email, "", "seed %d", l.seed)
}
