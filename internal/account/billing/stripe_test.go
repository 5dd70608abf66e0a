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

	"palmares/internal/dev/check"
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

// fakeStripe stands in for Stripe. It forwards every request to a real stripe-mock, which
// validates it against Stripe's specification, and adds the state of the test
// to the response.
type fakeStripe struct {
	*httptest.Server
	t *testing.T

	mu             sync.Mutex
	calls          []call
	subscriptions  map[string][]subscription // by customer
	sessions       []map[string]any          // open ones
	prices         []map[string]any
	pages          []map[string]any // configurations of the billing portal
	customers      int
	responses      map[string][]byte // responses, by idempotency key
	deleted        map[string]bool   // customers and prices that were deleted
	forbidden      string            // request that our key may not send
	failing        func(http.ResponseWriter, *http.Request)
	beforeResponse func(what string) // called before a response is sent
}

func newFakeStripe(t *testing.T) *fakeStripe {
	stripeMock() // now, because a request that waits for its start is sent again
	p := &fakeStripe{t: t, subscriptions: map[string][]subscription{}, responses: map[string][]byte{}, deleted: map[string]bool{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *fakeStripe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, err := url.ParseQuery(r.URL.RawQuery)
	if r.Method == http.MethodPost {
		form, err = url.ParseQuery(string(body))
	}
	check.Equal(p.t, err, nil, "%s %s", r.Method, r.URL.Path)
	request := call{r.Method, r.URL.Path, form, r.Header.Get("Idempotency-Key")}
	p.mu.Lock()
	p.calls = append(p.calls, request)
	failing, beforeResponse := p.failing, p.beforeResponse
	p.mu.Unlock()
	if failing != nil {
		failing(w, r)
		return
	}
	response := p.forward(r, body)
	status, response := p.addState(request, response)
	if beforeResponse != nil {
		beforeResponse(request.method + " " + request.path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(response)
}

// mockResponses are stripe-mock's responses to GET requests, by URL. It has no state.
var mockResponses sync.Map

// forward sends a request to stripe-mock, which must accept it.
func (p *fakeStripe) forward(r *http.Request, body []byte) []byte {
	if known, ok := mockResponses.Load(r.URL.RequestURI()); ok && r.Method == http.MethodGet {
		return known.([]byte)
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, stripeMock()+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		check.Fails(p.t, r.Context().Err(), "%s %s", r.Method, r.URL.Path)
		return nil
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		p.t.Errorf("%s %s: got %s, want 2xx: %s", r.Method, r.URL, response.Status, content)
	} else if r.Method == http.MethodGet {
		mockResponses.Store(r.URL.RequestURI(), content)
	}
	return content
}

// addState adds the state to a response.
func (p *fakeStripe) addState(request call, response []byte) (status int, corrected []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, before := p.responses[request.key]; before && request.key != "" {
		return http.StatusOK, known // like Stripe
	}
	var got map[string]any
	if err := json.Unmarshal(response, &got); err != nil {
		return http.StatusInternalServerError, nil
	}
	customer := request.form.Get("customer")
	switch id, named := strings.CutPrefix(request.path, "/v1/customers/"); {
	case request.is(p.forbidden):
		return http.StatusForbidden, invalidRequest()
	case p.deleted[customer]:
		return http.StatusBadRequest, missingObject("customer")
	case named && p.deleted[id]:
		return http.StatusNotFound, missingObject("id")
	case request.is("POST /v1/billing_portal/sessions") && len(p.pages) == 0:
		return http.StatusBadRequest, invalidRequest()
	case request.is("POST /v1/checkout/sessions") && p.deleted[request.form.Get("line_items[0][price]")]:
		return http.StatusBadRequest, missingObject("line_items[0][price]")
	}
	switch {
	case request.is("POST /v1/customers"):
		p.customers++
		got["id"] = customerID(p.customers)
	case request.is("POST /v1/checkout/sessions"):
		got["url"], got["status"] = fmt.Sprintf("https://checkout.stripe.test/%d", len(p.calls)), "open"
	case request.is("GET /v1/subscriptions"):
		form := got["data"].([]any)[0]
		list := []any{}
		for _, s := range p.subscriptions[customer] {
			list = append(list, s.in(form))
		}
		page(got, list, request.form)
	case request.is("GET /v1/checkout/sessions"):
		got["data"] = fill(got["data"].([]any)[0], p.sessions)
	case request.is("GET /v1/prices"):
		got["data"] = fill(got["data"].([]any)[0], p.prices)
	case request.is("GET /v1/billing_portal/configurations"):
		got["data"] = fill(got["data"].([]any)[0], p.pages)
	case request.is("POST /v1/billing_portal/configurations"):
		created := map[string]any{"id": "bpc_created", "is_default": false, "metadata": map[string]any{markName: request.form.Get("metadata[" + markName + "]")}}
		p.pages = append(p.pages, created)
		got["id"] = created["id"]
	case request.method == http.MethodDelete && strings.HasPrefix(request.path, "/v1/subscriptions/"):
		if !p.end(strings.TrimPrefix(request.path, "/v1/subscriptions/")) {
			return http.StatusNotFound, missingObject("id")
		}
	case strings.HasPrefix(request.path, "/v1/checkout/sessions/"):
		id, expire := strings.CutSuffix(strings.TrimPrefix(request.path, "/v1/checkout/sessions/"), "/expire")
		session := p.session(id)
		if expire && session["status"] != "open" {
			return http.StatusBadRequest, invalidRequest()
		}
		if expire {
			session["status"] = "expired"
		}
		got["status"] = session["status"]
	}
	corrected, _ = json.Marshal(got)
	if request.key != "" && request.method == http.MethodPost {
		p.responses[request.key] = corrected
	}
	return http.StatusOK, corrected
}

// missingObject returns Stripe's error for a missing object.
func missingObject(param string) []byte {
	return fmt.Appendf(nil, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"%s","message":"%s"}}`, param, stripeMessage)
}

// invalidRequest returns Stripe's error for an invalid request.
func invalidRequest() []byte {
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

// fill returns a copy of a template for each object.
func fill(form any, objects []map[string]any) []any {
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
	object["cancel_at_period_end"], object["cancel_at"] = s.cancels, unixOrNil(s.cancelAt)
	for _, item := range object["items"].(map[string]any)["data"].([]any) {
		item.(map[string]any)["current_period_end"] = s.periodEnd.Unix()
	}
	invoice := object["latest_invoice"].(map[string]any) // present because it is expanded
	invoice["created"] = s.invoiced.Unix()
	invoice["status_transitions"] = map[string]any{"finalized_at": unixOrNil(s.finalizedAt)}
	return object
}

func unixOrNil(at time.Time) any {
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

// end cancels a subscription and reports whether it had not ended before.
func (p *fakeStripe) end(id string) bool {
	for _, all := range p.subscriptions {
		for i := range all {
			if all[i].id == id && Live(string(all[i].status)) {
				all[i].status = stripe.SubscriptionStatusCanceled
				return true
			}
		}
	}
	return false
}

// session returns a checkout, or nil.
func (p *fakeStripe) session(id string) map[string]any {
	for _, s := range p.sessions {
		if s["id"] == id {
			return s
		}
	}
	return nil
}

// set sets the subscriptions of a customer.
func (p *fakeStripe) set(customer string, all ...subscription) {
	p.change(customer, func([]subscription) []subscription { return all })
}

// change changes the subscriptions of a customer.
func (p *fakeStripe) change(customer string, do func(all []subscription) []subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscriptions[customer] = do(p.subscriptions[customer])
}

// statuses returns the statuses of a customer's subscriptions, by id.
func (p *fakeStripe) statuses(customer string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for _, s := range p.subscriptions[customer] {
		all[s.id] = string(s.status)
	}
	return all
}

func (p *fakeStripe) failWith(failing func(http.ResponseWriter, *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing = failing
}

func (p *fakeStripe) recover() { p.failWith(nil) }

// deleteObject deletes a customer or a price at Stripe.
func (p *fakeStripe) deleteObject(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted[id] = true
}

// onRequest sets a function that is called before each response is sent.
func (p *fakeStripe) onRequest(do func(what string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beforeResponse = do
}

// requests returns the requests of a kind so far.
func (p *fakeStripe) requests(what string) (found []call) {
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
func (p *fakeStripe) only(t *testing.T, what string) call {
	t.Helper()
	found := p.requests(what)
	check.Must(t, len(found), 1, "%s: calls", what)
	return found[0]
}

// stripeMessage is the message of a failing Stripe, which only the log may contain.
const stripeMessage = "the frobnicator is on fire"

func internalError(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"api_error","message":"%s"}}`, stripeMessage)
}

func reject(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(invalidRequest())
}

func neverRespond(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func closeConnection(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
