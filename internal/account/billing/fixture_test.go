package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

// stripeMock is the address of Stripe's own API mock. It starts slowly and has
// no state, so all tests share one.
var stripeMock = sync.OnceValue(func() string { return testkit.StartStripeMock(shared) })

var shared = &sharedTB{}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range shared.ends {
		end()
	}
	os.Exit(code)
}

// sharedTB is a testing.TB for resources that all tests share.
type sharedTB struct {
	testing.TB
	ends []func()
}

func (w *sharedTB) Helper()                         {}
func (w *sharedTB) Cleanup(end func())              { w.ends = append(w.ends, end) }
func (w *sharedTB) Fatal(args ...any)               { log.Fatal(args...) }
func (w *sharedTB) Fatalf(form string, args ...any) { log.Fatalf(form, args...) }

const (
	secretKey     = "sk_test_topsecret"
	webhookSecret = "whsec_topsecret"
	publicURL     = "https://palmares.example"
	priceID       = "price_pro"
	owner         = "ana@example.com"
)

// fixture is billing with its dependencies and one account.
type fixture struct {
	*Billing
	t        *testing.T
	fake     *fakeStripe
	smtp     *testkit.SMTPServer
	outbox   *outbox.Outbox
	accounts *auth.Accounts
	account  *ent.Account
	log      *testkit.Log

	mu   sync.Mutex
	time time.Time
	ids  int // number of generated ids
}

// eachFixture runs a test on each kind of database. Tests run in parallel, because
// they mostly wait.
func eachFixture(t *testing.T, test func(t *testing.T, s *fixture)) {
	t.Helper()
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) { test(t, newFixture(t, db)) })
}

func newFixture(t *testing.T, db *store.Store) *fixture {
	t.Helper()
	s := &fixture{t: t, fake: newFakeStripe(t), smtp: testkit.StartSMTP(t), accounts: auth.NewAccounts(db), log: &testkit.Log{}, time: time.Now().Truncate(time.Second)}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mailer := check.Try(mail.New(mail.Config{URL: s.smtp.URL, From: "palmares@palmares.example", Log: log})).OK(t)
	s.outbox = outbox.New(db, mailer, log)
	s.Billing = New(Config{
		SecretKey: secretKey, WebhookSecret: webhookSecret, APIBase: s.fake.URL,
		PublicURL: publicURL, ServiceName: "palmarès", Store: db, Log: log,
	})
	s.foundPrice.Store(new(priceID)) // most tests are not about looking it up
	s.now = s.clock
	s.account = check.Try(s.accounts.Create(t.Context(), owner, auth.Developer)).OK(t)
	t.Cleanup(s.checkLog)
	return s
}

// email sends what is due and returns an email that the owner got.
func (s *fixture) email() string {
	s.t.Helper()
	check.OK(s.t, s.outbox.Send(s.t.Context()))
	return s.smtp.Wait(s.t, owner)
}

// emails sends what is due and returns how many emails the owner got.
func (s *fixture) emails() int {
	s.t.Helper()
	check.OK(s.t, s.outbox.Send(s.t.Context()))
	return s.smtp.Count(owner)
}

func (s *fixture) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

func (s *fixture) wait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

// customer creates the account's customer like Subscribe.
func (s *fixture) customer() *ent.Customer {
	s.t.Helper()
	return check.Try(s.ensureCustomer(s.t.Context(), s.account)).OK(s.t)
}

// row returns the first customer.
func (s *fixture) row() *ent.Customer {
	s.t.Helper()
	return check.Try(s.Store.Write.Customer.Get(s.t.Context(), customerID(1))).OK(s.t)
}

func (s *fixture) wantPlan(want auth.Plan) {
	s.t.Helper()
	acc := check.Try(s.Store.Write.Account.Get(s.t.Context(), s.account.ID)).OK(s.t)
	check.Must(s.t, auth.Plan(acc.Plan), want, "plan")
}

// started returns a subscription that starts now.
func (s *fixture) started(status stripe.SubscriptionStatus) subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return subscription{
		id: fmt.Sprintf("sub_%d", s.ids), status: status,
		created: s.time, periodEnd: s.time.Add(30 * 24 * time.Hour), invoiced: s.time,
	}
}

// sendChange sets the subscriptions at Stripe and sends an event.
func (s *fixture) sendChange(what stripe.EventType, all ...subscription) {
	s.t.Helper()
	s.fake.set(customerID(1), all...)
	s.wantStatus(s.send(s.event(what)), http.StatusOK)
}

// subscribed subscribes the account to Pro.
func (s *fixture) subscribed() subscription {
	s.t.Helper()
	s.customer()
	sub := s.started(stripe.SubscriptionStatusActive)
	s.sendChange(stripe.EventTypeCustomerSubscriptionCreated, sub)
	s.wantPlan(auth.Pro)
	return sub
}

// event returns an event about the first customer.
func (s *fixture) event(what stripe.EventType) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return eventOf(fmt.Sprintf("evt_%d", s.ids), what, customerID(1))
}

func eventOf(id string, what stripe.EventType, customer string) []byte {
	object := map[string]any{"object": "subscription", "id": "sub_x", "customer": customer}
	if what == stripe.EventTypeCustomerDeleted {
		object = map[string]any{"object": "customer", "id": customer}
	}
	return eventAbout(id, what, object)
}

func eventAbout(id string, what stripe.EventType, object any) []byte {
	payload, _ := json.Marshal(map[string]any{
		"object": "event", "id": id, "type": what, "api_version": "2020-08-27", "data": map[string]any{"object": object},
	})
	return payload
}

func signed(payload []byte, secret string, at time.Time) string {
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: payload, Secret: secret, Timestamp: at}).Header
}

// send delivers a signed event.
func (s *fixture) send(payload []byte) *httptest.ResponseRecorder {
	return s.deliver(context.Background(), payload, signed(payload, webhookSecret, time.Now()))
}

// deliver may be called concurrently.
func (s *fixture) deliver(ctx context.Context, payload []byte, signature string) *httptest.ResponseRecorder {
	return deliverTo(ctx, s.Billing, payload, signature)
}

func deliverTo(ctx context.Context, server *Billing, payload []byte, signature string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, EventsPath, bytes.NewReader(payload))
	if signature != "" {
		r.Header.Set("Stripe-Signature", signature)
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w
}

// internalTexts are secrets and messages of libraries, which users must not see.
var internalTexts = []string{"sk_test", "whsec", stripeMessage, "sql:", "pq:", "sqlite", "database is closed", "webhook had", "Stripe-Signature", "dial tcp", "EOF", "context "}

func (s *fixture) wantStatus(w *httptest.ResponseRecorder, status int) {
	s.t.Helper()
	check.Must(s.t, w.Code, status, "status")
	s.wantNoInternalText(w.Body.String())
}

func (s *fixture) wantNoInternalText(text string) {
	s.t.Helper()
	for _, word := range internalTexts {
		check.Lacks(s.t, text, word)
	}
}

// applied returns the number of applied events.
func (s *fixture) applied() int {
	s.t.Helper()
	return check.Try(s.Store.Write.BillingEvent.Query().Count(s.t.Context())).OK(s.t)
}

// checkLog fails on secrets, and on Stripe's messages outside of errors.
func (s *fixture) checkLog() {
	for line := range strings.Lines(s.log.String()) {
		check.Lacks(s.t, line, "topsecret", "a secret in the log")
		quiet := strings.Contains(line, `"level":"INFO"`) || strings.Contains(line, `"level":"DEBUG"`)
		check.True(s.t, !quiet || !strings.Contains(line, stripeMessage), "got the message of Stripe in the log, want none: %s", line)
	}
}
