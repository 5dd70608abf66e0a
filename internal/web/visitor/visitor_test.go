package visitor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
)

// newTestLimiter returns a limiter and a function that uses CPU time, for use in a
// bubble of synctest.
func newTestLimiter() (l *Limiter, use func(time.Duration)) {
	var used time.Duration
	l = NewLimiter(nil)
	l.cpu = func() time.Duration { return used }
	return l, func(d time.Duration) {
		used += d
		time.Sleep(d)
	}
}

// from returns the context of a visitor.
func (l *Limiter) from(address string) context.Context {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = address + ":1234"
	return l.Identify(r)
}

func mustStart(t *testing.T, l *Limiter, address string) (done func()) {
	t.Helper()
	done, err := l.Start(l.from(address))
	check.OK(t, err, address)
	return done
}

// A visitor has 5 seconds of CPU time, and 2 more in each minute.
func TestBudgetOfCPUTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, use := newTestLimiter()
		for range 6 { // 6 s, of which 0.2 s recover meanwhile
			done := mustStart(t, l, "192.0.2.1")
			use(time.Second)
			done()
		}
		_, err := l.Start(l.from("192.0.2.1"))
		over := problem.Of(err)
		if over.Code != problem.TooMany || over.RetryAfter < 20*time.Second || over.RetryAfter > 30*time.Second {
			t.Fatalf("got %v, want 20 to 30 seconds to wait", err)
		}
		mustStart(t, l, "192.0.2.2")()
		time.Sleep(over.RetryAfter - 2*time.Second)
		if _, err := l.Start(l.from("192.0.2.1")); err == nil {
			t.Error("got a page before Retry-After, want an error")
		}
		time.Sleep(2 * time.Second)
		mustStart(t, l, "192.0.2.1")()
		time.Sleep(time.Minute)
		done := mustStart(t, l, "192.0.2.1")
		use(1900 * time.Millisecond)
		done()
		mustStart(t, l, "192.0.2.1")()
	})
}

// A page pays for its share of the CPU time, and not more than the time that passes.
func TestPagesShareCPUTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newTestLimiter()
		var used time.Duration
		l.cpu = func() time.Duration { return used }
		first, second := mustStart(t, l, "192.0.2.1"), mustStart(t, l, "192.0.2.2")
		used += 4 * time.Second
		time.Sleep(4 * time.Second)
		first()
		used += time.Hour // of other requests
		time.Sleep(time.Second)
		second()
		for address, want := range map[string]time.Duration{"192.0.2.1": 2 * time.Second, "192.0.2.2": 3 * time.Second} {
			v := l.visitors[l.from(address).Value(visitorKey{}).(quota.Subject)]
			if recovered := 200 * time.Millisecond; v.used > want || v.used < want-recovered {
				t.Errorf("%s: got %v of CPU time, want about %v", address, v.used, want)
			}
		}
	})
}

// A page of a new visitor is rendered before the next pages of busy ones.
func TestNewVisitorsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, use := newTestLimiter()
		var mu sync.Mutex
		var started []string
		add := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, what)
		}
		start := func(address string, during time.Duration) {
			go func() {
				done, err := l.Start(l.from(address))
				if err != nil {
					add(fmt.Sprint(address, " ", err))
					return
				}
				add(address)
				time.Sleep(during)
				done()
			}()
			synctest.Wait()
		}
		done := mustStart(t, l, "192.0.2.1") // has used some CPU time
		use(time.Millisecond)
		done()
		for i := range time.Duration(5) { // no two pages end at the same time, so that they start in order
			start("192.0.2.1", time.Second+2*i*time.Millisecond)
			start("192.0.2.2", time.Second+(2*i+1)*time.Millisecond)
		}
		start("192.0.2.3", time.Second)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if want := []string{"192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.3"}; len(started) != 8 || !slices.Equal(started[:5], want) {
			t.Errorf("got %q, want %q first and three more", started, want)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
	})
}

// Of one visitor, a limited number of pages wait, each for a limited time.
func TestWaitingIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newTestLimiter()
		done := []func(){mustStart(t, l, "192.0.2.1"), mustStart(t, l, "192.0.2.1")}
		results := make(chan error, maxPagesPerVisitor)
		for range maxPagesPerVisitor - len(done) {
			go func() {
				_, err := l.Start(l.from("192.0.2.1"))
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := l.Start(l.from("192.0.2.1")); !errors.Is(err, errBusy) {
			t.Errorf("got %v, want %v", err, errBusy)
		}
		for range maxPagesPerVisitor - len(done) {
			if err := <-results; !errors.Is(err, errBusy) {
				t.Errorf("after waiting: got %v, want %v", err, errBusy)
			}
		}
		for _, done := range done {
			done()
		}
		mustStart(t, l, "192.0.2.1")()
		check.Equal(t, len(l.rendering), 0)
		check.Equal(t, len(l.waiting), 0)
	})
}

// Visitors whose budgets have recovered are forgotten, and no others.
func TestVisitorsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, use := newTestLimiter()
		done := mustStart(t, l, "192.0.2.1")
		use(time.Second)
		done()
		for i := range 3 * minRemembered {
			mustStart(t, l, fmt.Sprintf("10.0.%d.%d", i/250, i%250))()
		}
		if n := len(l.visitors); n > minRemembered {
			t.Errorf("got %d visitors, want at most %d", n, minRemembered)
		}
		for _, v := range l.visitors {
			if v.used > 0 {
				return
			}
		}
		t.Error("a visitor was forgotten before its CPU time had recovered")
	})
}

// Work without a visitor does not wait.
func TestWorkWithoutVisitor(t *testing.T) {
	l := NewLimiter(nil)
	for range maxRendering + 1 {
		if _, err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if before := processTime(); before <= 0 {
		t.Errorf("got a CPU time of %v, want more than 0", before)
	}
}

// Pages are charged while they are rendered, not while they are sent, and refused without a
// budget.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, use := newTestLimiter()
		rendering := 0
		slow := &slowWriter{ResponseRecorder: httptest.NewRecorder(), write: func() { rendering = len(l.rendering) }}
		pages := l.Limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			use(burst)
			w.Header().Set("X-Page", "1")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "a page")
		}), func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), problem.Of(err).Code.Status())
		})
		r := httptest.NewRequest("GET", "/status", nil)
		pages.ServeHTTP(slow, r)
		if slow.Code != 404 || slow.Body.String() != "a page" || slow.Header().Get("X-Page") != "1" || rendering != 0 {
			t.Errorf("got %d %q with %d pages rendering, want the page and none", slow.Code, slow.Body, rendering)
		}
		w := httptest.NewRecorder()
		if pages.ServeHTTP(w, r); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %v, want 429 with Retry-After", w.Code, w.Header())
		}
	})
}

// slowWriter calls a function when a page is sent.
type slowWriter struct {
	*httptest.ResponseRecorder
	write func()
}

func (w *slowWriter) Write(data []byte) (int, error) {
	w.write()
	return w.ResponseRecorder.Write(data)
}
