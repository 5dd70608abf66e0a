package webhook

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// refusedTest returns the error of a test event that is over the limit.
func refusedTest(t *testing.T, err error) *TestLimitError {
	t.Helper()
	var limit *TestLimitError
	check.MustTrue(t, errors.As(err, &limit), "got %v, want a TestLimitError", err)
	check.Equal(t, problem.Of(err).Code.Status(), http.StatusTooManyRequests, "status")
	return limit
}

func TestTestEventsAreLimited(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		first, second := s.add(NewEndpoint{URL: in.URL}), s.add(NewEndpoint{URL: in.URL})
		for i := range testsPerWindow {
			e := first
			if i%2 == 1 {
				e = second
			}
			_, err := s.Test(t.Context(), e)
			check.OK(t, err)
			s.clock.advance(time.Second)
		}
		_, err := s.Test(t.Context(), first)
		got, want := refusedTest(t, err).RetryAfter, testWindow-testsPerWindow*time.Second
		check.Equal(t, got.Round(time.Second), want, "Retry-After %v", got)

		// Another server and the command line count in the same database.
		other := New(s.Config)
		other.now = s.clock.now
		_, err = other.Test(t.Context(), second)
		refusedTest(t, err)
		check.Equal(t, len(in.all()), testsPerWindow, "test events")

		// Other accounts have limits of their own.
		ben, err := auth.NewAccounts(s.Store).Create(t.Context(), "ben@example.com", auth.Pro)
		check.OK(t, err)
		bens, err := s.Add(t.Context(), ben, NewEndpoint{URL: in.URL})
		check.OK(t, err)
		_, err = s.Test(t.Context(), bens)
		check.Equal(t, err, nil, "another account")

		s.clock.advance(testWindow - testsPerWindow*time.Second)
		_, err = s.Test(t.Context(), first)
		check.Equal(t, err, nil, "a minute later")
		_, err = s.Test(t.Context(), first)
		refusedTest(t, err)
	})
}

// Concurrent requests to several servers share the limit.
func TestConcurrentTestEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		e := s.add(NewEndpoint{URL: in.URL})
		other := New(s.Config)
		other.now = s.clock.now
		var all sync.WaitGroup
		for i := range 3 * testsPerWindow {
			all.Go(func() {
				server := s.Webhooks
				if i%2 == 1 {
					server = other
				}
				var limit *TestLimitError
				if _, err := server.Test(t.Context(), e); err != nil && !errors.As(err, &limit) {
					t.Errorf("got %v, want no error or a TestLimitError", err)
				}
			})
		}
		all.Wait()
		check.Equal(t, len(in.all()), testsPerWindow, "test events")
		check.Equal(t, len(s.attempts(e)), testsPerWindow, "attempts")
	})
}

// Neither disconnecting nor replacing the endpoint resets the limit.
func TestTestLimitCannotBeReset(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		in := newReceiver(t)
		s.freezeClock()
		e := s.add(NewEndpoint{URL: in.URL})
		for range testsPerWindow / 2 {
			ctx, hangUp := context.WithCancel(t.Context())
			in.respond(func(_ int, _ http.ResponseWriter, r *http.Request) {
				hangUp()
				<-r.Context().Done()
			})
			_, err := s.Test(ctx, e)
			check.MustTrue(t, errors.Is(err, context.Canceled), "got %v, want context.Canceled", err)
		}
		in.respondStatus(http.StatusOK)
		for i := range testsPerWindow {
			check.OK(t, s.Remove(t.Context(), e))
			e = s.add(NewEndpoint{URL: in.URL})
			_, err := s.Test(t.Context(), e)
			if i < testsPerWindow/2 {
				check.OK(t, err)
				continue
			}
			refusedTest(t, err)
		}
		check.Equal(t, len(in.all()), testsPerWindow, "test events")
	})
}
