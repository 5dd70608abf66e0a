package billing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"
)

// subscription is a subscription at Stripe.
type subscription struct {
	id          string
	status      stripe.SubscriptionStatus
	created     time.Time
	periodEnd   time.Time
	cancels     bool
	cancelAt    time.Time
	invoiced    time.Time // date of the latest invoice
	finalizedAt time.Time
}

// call is a request to Stripe.
type call struct {
	method, path string
	form         url.Values
	key          string // idempotency key
}

func (c call) is(what string) bool { return c.method+" "+c.path == what }

// peer plays Stripe. It forwards every request to a real stripe-mock, which
// validates it against Stripe's specification, and adds the state of the test
// to the response.
type peer struct {
	*httptest.Server
	t *testing.T

	mu            sync.Mutex
	calls         []call
	subscriptions map[string][]subscription // by customer
	sessions      []map[string]any          // open ones
	prices        []map[string]any
	pages         []map[string]any // configurations of the billing portal
	customers     int
	remembered    map[string][]byte // responses, by idempotency key
	deleted       map[string]bool   // customers and prices that were deleted
	forbidden     string            // request that our key may not send
	broken        func(http.ResponseWriter, *http.Request)
	afterReading  func(what string) // called before a response is sent
}

func newPeer(t *testing.T) *peer {
	p := &peer{t: t, subscriptions: map[string][]subscription{}, remembered: map[string][]byte{}, deleted: map[string]bool{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(r.URL.RawQuery)
	if r.Method == http.MethodPost {
		form, err = url.ParseQuery(string(body))
	}
	if err != nil {
		p.t.Errorf("%s %s: got %v, want no error", r.Method, r.URL.Path, err)
	}
	made := call{r.Method, r.URL.Path, form, r.Header.Get("Idempotency-Key")}
	p.mu.Lock()
	p.calls = append(p.calls, made)
	broken, afterReading := p.broken, p.afterReading
	p.mu.Unlock()
	if broken != nil {
		broken(w, r)
		return
	}
	response := p.forward(r, body)
	status, response := p.addState(made, response)
	if afterReading != nil {
		afterReading(made.method + " " + made.path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(response)
}

// forward sends a request to stripe-mock, which must accept it.
func (p *peer) forward(r *http.Request, body []byte) []byte {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, stripeMock+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if r.Context().Err() == nil {
			p.t.Errorf("%s %s: got %v, want no error", r.Method, r.URL.Path, err)
		}
		return nil
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		p.t.Errorf("%s %s: %s %s", r.Method, r.URL, response.Status, content)
	}
	return content
}

// addState adds the state to a response.
func (p *peer) addState(made call, response []byte) (status int, corrected []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, before := p.remembered[made.key]; before && made.key != "" {
		return http.StatusOK, known // like Stripe
	}
	var got map[string]any
	if err := json.Unmarshal(response, &got); err != nil {
		return http.StatusInternalServerError, nil
	}
	customer := made.form.Get("customer")
	switch id, named := strings.CutPrefix(made.path, "/v1/customers/"); {
	case made.is(p.forbidden):
		return http.StatusForbidden, refusal()
	case p.deleted[customer]:
		return http.StatusBadRequest, noSuch("customer")
	case named && p.deleted[id]:
		return http.StatusNotFound, noSuch("id")
	case made.is("POST /v1/billing_portal/sessions") && len(p.pages) == 0:
		return http.StatusBadRequest, refusal()
	case made.is("POST /v1/checkout/sessions") && p.deleted[made.form.Get("line_items[0][price]")]:
		return http.StatusBadRequest, noSuch("line_items[0][price]")
	}
	switch {
	case made.is("POST /v1/customers"):
		p.customers++
		got["id"] = customerID(p.customers)
	case made.is("POST /v1/checkout/sessions"):
		got["url"], got["status"] = fmt.Sprintf("https://checkout.stripe.test/%d", len(p.calls)), "open"
	case made.is("GET /v1/subscriptions"):
		form := got["data"].([]any)[0]
		list := []any{}
		for _, s := range p.subscriptions[customer] {
			list = append(list, s.in(form))
		}
		page(got, list, made.form)
	case made.is("GET /v1/checkout/sessions"):
		got["data"] = filled(got["data"].([]any)[0], p.sessions)
	case made.is("GET /v1/prices"):
		got["data"] = filled(got["data"].([]any)[0], p.prices)
	case made.is("GET /v1/billing_portal/configurations"):
		got["data"] = filled(got["data"].([]any)[0], p.pages)
	case made.is("POST /v1/billing_portal/configurations"):
		made := map[string]any{"id": "bpc_made", "is_default": false, "metadata": map[string]any{markName: made.form.Get("metadata[" + markName + "]")}}
		p.pages = append(p.pages, made)
		got["id"] = made["id"]
	case made.method == http.MethodDelete && strings.HasPrefix(made.path, "/v1/subscriptions/"):
		p.end(strings.TrimPrefix(made.path, "/v1/subscriptions/"))
	}
	corrected, _ = json.Marshal(got)
	if made.key != "" && made.method == http.MethodPost {
		p.remembered[made.key] = corrected
	}
	return http.StatusOK, corrected
}

// noSuch returns Stripe's error for a missing object.
func noSuch(param string) []byte {
	return fmt.Appendf(nil, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"%s","message":"%s"}}`, param, stripeMessage)
}

// refusal returns Stripe's error for an invalid request.
func refusal() []byte {
	return fmt.Appendf(nil, `{"error":{"type":"invalid_request_error","message":"%s"}}`, stripeMessage)
}

func customerID(number int) string { return fmt.Sprintf("cus_%d", number) }

// page paginates a list like Stripe.
func page(response map[string]any, list []any, form url.Values) {
	const size = 10
	if after := form.Get("starting_after"); after != "" {
		list = list[1+slices.IndexFunc(list, func(s any) bool { return s.(map[string]any)["id"] == after }):]
	}
	response["has_more"] = len(list) > size
	response["data"] = list[:min(size, len(list))]
}

// filled returns a copy of a template for each object.
func filled(form any, objects []map[string]any) []any {
	list := []any{}
	for _, values := range objects {
		object := clone(form)
		for key, value := range values {
			object[key] = value
		}
		list = append(list, object)
	}
	return list
}

func (s subscription) in(form any) map[string]any {
	object := clone(form)
	object["id"], object["status"], object["created"] = s.id, s.status, s.created.Unix()
	object["cancel_at_period_end"], object["cancel_at"] = s.cancels, moment(s.cancelAt)
	for _, item := range object["items"].(map[string]any)["data"].([]any) {
		item.(map[string]any)["current_period_end"] = s.periodEnd.Unix()
	}
	invoice := object["latest_invoice"].(map[string]any) // present because it is expanded
	invoice["created"] = s.invoiced.Unix()
	invoice["status_transitions"] = map[string]any{"finalized_at": moment(s.finalizedAt)}
	return object
}

func moment(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Unix()
}

func clone(object any) map[string]any {
	text, _ := json.Marshal(object)
	var copied map[string]any
	_ = json.Unmarshal(text, &copied)
	return copied
}

func (p *peer) end(id string) {
	for _, all := range p.subscriptions {
		for i := range all {
			if all[i].id == id {
				all[i].status = stripe.SubscriptionStatusCanceled
			}
		}
	}
}

// set sets the subscriptions of a customer.
func (p *peer) set(customer string, all ...subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions[customer] = all
}

func (p *peer) breakWith(broken func(http.ResponseWriter, *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = broken
}

func (p *peer) repair() { p.breakWith(nil) }

// forget deletes a customer or a price at Stripe.
func (p *peer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted[id] = true
}

// onReading sets a function that is called before each response is sent.
func (p *peer) onReading(do func(what string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.afterReading = do
}

// requests returns the requests of a kind so far.
func (p *peer) requests(what string) (found []call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.is(what) {
			found = append(found, c)
		}
	}
	return found
}

// only returns the only request of a kind.
func (p *peer) only(t *testing.T, what string) call {
	t.Helper()
	found := p.requests(what)
	if len(found) != 1 {
		t.Fatalf("%s: got %d calls, want 1", what, len(found))
	}
	return found[0]
}

// stripeMessage is the message of a failing Stripe, which only the log may contain.
const stripeMessage = "the frobnicator is on fire"

func internalError(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"api_error","message":"%s"}}`, stripeMessage)
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(refusal())
}

func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
