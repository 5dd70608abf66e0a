package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// receiver is somebody's endpoint.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*received
	answer func(n int, w http.ResponseWriter, r *http.Request) // to the n-th
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := newUnstarted(t)
	r.Start()
	return r
}

func newUnstarted(t *testing.T) *receiver {
	r := &receiver{answer: func(int, http.ResponseWriter, *http.Request) {}}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, &received{req.Header, body})
		n, answer := len(r.got), r.answer
		r.mu.Unlock()
		answer(n, w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// answers says what it does from now on.
func (r *receiver) answers(answer func(n int, w http.ResponseWriter, r *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) answersStatus(status int) {
	r.answers(func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// holds lets the first that comes wait for its answer: when it is there, and
// until it is let go on.
func (r *receiver) holds() (there, on chan struct{}) {
	there, on = make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.answers(func(int, http.ResponseWriter, *http.Request) { once.Do(func() { close(there); <-on }) })
	return there, on
}

func (r *receiver) all() []*received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// forget starts anew.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = nil
}

// ids of what came, in its order.
func (r *receiver) ids() (all []string) {
	for _, one := range r.all() {
		all = append(all, one.header.Get("webhook-id"))
	}
	return all
}

func (r *receiver) wait(t *testing.T, n int) []*received {
	t.Helper()
	eventually(t, "all have arrived", func() bool { return len(r.all()) >= n })
	return r.all()
}
