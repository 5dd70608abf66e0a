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

// subscription is what a test says that Stripe knows of one.
type subscription struct {
	id          string
	status      stripe.SubscriptionStatus
	created     time.Time
	periodEnd   time.Time
	cancels     bool
	cancelAt    time.Time
	invoiced    time.Time // when its latest invoice was made
	finalizedAt time.Time
}

// call is a request that was made to Stripe.
type call struct {
	method, path string
	form         url.Values
	key          string // of idempotency
}

func (c call) is(what string) bool { return c.method+" "+c.path == what }

// peer is Stripe. A real stripe-mock answers every request, and so checks it
// against Stripe's own description; the state that it lacks is put into its
// answers here.
type peer struct {
	*httptest.Server
	t *testing.T

	mu            sync.Mutex
	calls         []call
	subscriptions map[string][]subscription // by customer
	sessions      []map[string]any          // open ones
	prices        []map[string]any
	pages         []map[string]any // what people manage their subscription with
	customers     int
	remembered    map[string][]byte // answers, by idempotency key
	gone          map[string]bool   // customers and prices that were deleted
	forbidden     string            // what our key may not do
	broken        func(http.ResponseWriter, *http.Request)
	afterReading  func(what string) // with an answer ready, before it is sent
}

func newPeer(t *testing.T) *peer {
	p := &peer{t: t, subscriptions: map[string][]subscription{}, remembered: map[string][]byte{}, gone: map[string]bool{}}
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
		p.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
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
	answer := p.ask(r, body)
	status, answer := p.correct(made, answer)
	if afterReading != nil {
		afterReading(made.method + " " + made.path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// ask hands a request to stripe-mock, which must have nothing to say against it.
func (p *peer) ask(r *http.Request, body []byte) []byte {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, stripeMock+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return nil
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if r.Context().Err() == nil {
			p.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		return nil
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode/100 != 2 {
		p.t.Errorf("%s %s: %s %s", r.Method, r.URL, response.Status, answer)
	}
	return answer
}

// correct puts the state of things into an answer.
func (p *peer) correct(made call, answer []byte) (status int, corrected []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, before := p.remembered[made.key]; before && made.key != "" {
		return http.StatusOK, known // as Stripe does for a repeated key
	}
	var got map[string]any
	if err := json.Unmarshal(answer, &got); err != nil {
		return http.StatusInternalServerError, nil
	}
	customer := made.form.Get("customer")
	switch id, named := strings.CutPrefix(made.path, "/v1/customers/"); {
	case made.is(p.forbidden):
		return http.StatusForbidden, refusal()
	case p.gone[customer]:
		return http.StatusBadRequest, noSuch("customer")
	case named && p.gone[id]:
		return http.StatusNotFound, noSuch("id")
	case made.is("POST /v1/billing_portal/sessions") && len(p.pages) == 0:
		return http.StatusBadRequest, refusal()
	case made.is("POST /v1/checkout/sessions") && p.gone[made.form.Get("line_items[0][price]")]:
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

// noSuch is what Stripe says of something that it does not have.
func noSuch(param string) []byte {
	return fmt.Appendf(nil, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"%s","message":"%s"}}`, param, stripesWords)
}

// refusal is what Stripe says of what it will not do.
func refusal() []byte {
	return fmt.Appendf(nil, `{"error":{"type":"invalid_request_error","message":"%s"}}`, stripesWords)
}

func customerID(number int) string { return fmt.Sprintf("cus_%d", number) }

// page cuts a list as Stripe does.
func page(answer map[string]any, list []any, form url.Values) {
	const size = 10
	if after := form.Get("starting_after"); after != "" {
		list = list[1+slices.IndexFunc(list, func(s any) bool { return s.(map[string]any)["id"] == after }):]
	}
	answer["has_more"] = len(list) > size
	answer["data"] = list[:min(size, len(list))]
}

// filled is one copy of a form for each of some objects.
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
	invoice := object["latest_invoice"].(map[string]any) // there only if it was asked for
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

// set says which subscriptions a customer has.
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

func (p *peer) mend() { p.breakWith(nil) }

// forget makes a customer or a price one that Stripe has no more.
func (p *peer) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[id] = true
}

// onReading is called whenever an answer is ready, before it is sent.
func (p *peer) onReading(do func(what string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.afterReading = do
}

// made are the requests of one kind, so far.
func (p *peer) made(what string) (found []call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.is(what) {
			found = append(found, c)
		}
	}
	return found
}

// only is the one request of a kind that there must be.
func (p *peer) only(t *testing.T, what string) call {
	t.Helper()
	found := p.made(what)
	if len(found) != 1 {
		t.Fatalf("%s: %d calls, not 1", what, len(found))
	}
	return found[0]
}

// stripesWords are what a failing Stripe says, and nobody else may.
const stripesWords = "the frobnicator is on fire"

func internalError(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"api_error","message":"%s"}}`, stripesWords)
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(refusal())
}

func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
