package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The events of an import arrive signed, in order and once.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		feedtest.Publish(t, s.Store, feedtest.Synthetic(t, synth.Options{Tools: 40, Seed: 1}))
		before := check.Try(journal.Newest(t.Context(), s.Store.Read.JournalEntry)).OK(t)
		r := newReceiver(t)
		e := s.add(NewEndpoint{URL: r.URL + "/hook?for=me"})
		started := time.Now()
		background(t, s.Run)
		feedtest.Publish(t, s.Store, feedtest.Synthetic(t, synth.Options{Tools: 40, Seed: 1, Revision: 5}))
		events, err := journal.Read(t.Context(), s.Store.Read.JournalEntry, journal.Query{After: before, Limit: 1000})
		check.OK(t, err, len(events))
		check.MustTrue(t, len(events) >= 5, "got %v", len(events))
		got := r.wait(t, len(events))
		hook := check.Try(standardwebhooks.NewWebhook(e.Secret)).OK(t)
		for i, one := range got {
			check.Equal(t, hook.Verify(one.body, one.header), nil)
			check.Equal(t, one.header.Get("webhook-id"), events[i].ID(), "event %d", i)
			check.Equal(t, string(one.body), string(events[i].JSON()))
			check.Equal(t, one.header.Get("Content-Type"), "application/json")
			at := check.Try(strconv.ParseInt(one.header.Get("webhook-timestamp"), 10, 64)).OK(t)
			check.True(t, at >= started.Unix() && at <= time.Now().Unix(), "got timestamp %d, want now", at)
		}
		// If an event was sent twice, the second one would arrive before this one.
		s.publishTools(0)
		r.wait(t, len(events)+1)
		eventually(t, "the attempts are recorded", func() bool { return len(s.attempts(e)) == len(events)+1 })
		eventually(t, "no retry is pending", func() bool { return len(s.deliveries(e)) == 0 })
		check.Equal(t, len(r.all()), len(events)+1, "events")
		check.Equal(t, s.logs.String(), "", "log")
	})
}

// Two servers send each event once.
func TestTwoServersSendOnce(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	first := newFixture(t, testkit.Open(t, cfg))
	second := New(first.Config)
	second.Store, second.timing = testkit.Open(t, cfg), testTiming
	receivers := []*receiver{newReceiver(t), newReceiver(t), newReceiver(t)}
	for _, r := range receivers {
		first.add(NewEndpoint{URL: r.URL})
	}
	background(t, first.Run)
	background(t, second.Run)
	var want []string
	for range 5 {
		want = append(want, ids(first.publishTools(60), 61)...)
	}
	for _, r := range receivers {
		r.wait(t, len(want))
	}
	want = append(want, ids(first.publishTools(0), 1)...) // after any event that is sent twice
	for _, r := range receivers {
		r.wait(t, len(want))
	}
	for _, r := range receivers {
		check.Slices(t, r.ids(), want, "events")
	}
}

// A slow receiver does not delay others, and gets all events.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	s.timing.prompt = defaultTiming.prompt
	s.timing.work = 300 * time.Millisecond
	slow, quick := newReceiver(t), newReceiver(t)
	var busy, most atomic.Int32
	quickDone := make(chan struct{})
	slow.respond(func(int, http.ResponseWriter, *http.Request) {
		if n := busy.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-quickDone
		time.Sleep(200 * time.Millisecond)
		busy.Add(-1)
	})
	s.add(NewEndpoint{URL: slow.URL})
	s.add(NewEndpoint{URL: quick.URL})
	background(t, s.Run)
	first := s.publishTools(29)
	quick.wait(t, 30)
	got := len(slow.all())
	check.True(t, got <= maxPending, "slow receiver: got %d events, want at most %d", got, maxPending)
	close(quickDone)
	check.True(t, sameSet(quick.ids(), ids(first, 30)), "quick receiver: got %v, want %v", quick.ids(), ids(first, 30))
	// This takes longer than a worker may, but no request is cut off and repeated.
	slow.wait(t, 30)
	eventually(t, "all requests are done", func() bool { return busy.Load() == 0 })
	last := s.publishTools(0) // after any event that is sent twice
	slow.wait(t, 31)
	check.True(t, sameSet(slow.ids(), append(ids(first, 30), ids(last, 1)...)), "slow receiver: got %v, want %v and %v", slow.ids(), ids(first, 30), ids(last, 1))
	check.True(t, most.Load() <= maxPending, "got %d requests at once, want at most %d", most.Load(), maxPending)
}

// sameSet compares events that may overtake each other.
func sameSet(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

func TestFilter(t *testing.T) {
	t.Parallel()
	duel := func(slug, category, other string) journal.Entry {
		return journal.Entry{Kind: journal.ComparisonCreated, Event: journal.EventComparisonPublished, Slug: slug, Category: category, OtherCategory: other, After: []byte(`{"slug":"` + slug + `"}`)}
	}
	eachFixture(t, func(t *testing.T, s *fixture) {
		type wanted struct {
			spec NewEndpoint
			want string
		}
		all := []wanted{
			{NewEndpoint{}, "code voix code-voix voix-chat hidden. release"},
			{NewEndpoint{Filter: Filter{Categories: []string{"voix"}}}, "voix code-voix voix-chat release"},
			{NewEndpoint{Filter: Filter{Categories: []string{"chat", "code"}}}, "code code-voix voix-chat release"},
			{NewEndpoint{Types: []string{journal.EventToolCreated}}, "code voix hidden."},
			{NewEndpoint{Types: []string{journal.EventToolCreated}, Filter: Filter{Categories: []string{"code"}}}, "code"},
			{NewEndpoint{Types: []string{journal.EventCatalogPublished}, Filter: Filter{Categories: []string{"code"}}}, "release"},
			{NewEndpoint{Types: []string{journal.EventComparisonPublished, journal.EventToolCreated}, Filter: Filter{Categories: []string{"voix"}}}, "voix code-voix voix-chat"},
			{NewEndpoint{Filter: Filter{Tools: []string{"code", "code-voix"}, Categories: []string{"chat"}}}, "code voix-chat release"}, // a comparison is not a tool
			{NewEndpoint{Types: []string{journal.EventToolRemoved}}, ""},
			{NewEndpoint{Filter: Filter{Categories: []string{"nobody"}}}, "release"},
		}
		receivers := make([]*receiver, len(all))
		for i := range all {
			receivers[i] = newReceiver(t)
			all[i].spec.URL = receivers[i].URL
			s.add(all[i].spec)
		}
		silent := toolCreated("silent", "code")
		silent.Event = ""
		s.publish(toolCreated("code", "code"), toolCreated("voix", "voix"), silent,
			duel("code-voix", "code", "voix"), duel("voix-chat", "voix", "chat"), toolCreated("hidden.", "hidden"))
		list := check.Try(s.List(t.Context(), s.owner)).OK(t)
		for i, e := range list {
			s.sendDue(e)
			var got []string
			for _, one := range receivers[i].all() {
				var body struct{ Slug, Type string }
				check.OK(t, json.Unmarshal(one.body, &body))
				if body.Slug == "" {
					body.Slug = "release"
				}
				got = append(got, body.Slug)
			}
			check.Equal(t, strings.Join(got, " "), all[i].want, "%+v: %v", all[i].spec, got)
			// The position also passes unwanted events.
			newest, _ := journal.Newest(t.Context(), s.Store.Read.JournalEntry)
			check.Equal(t, s.find(e.ID).Position, newest, "%+v: position", all[i].spec)
		}
	})
}

// After a backup of the journal was restored, an endpoint's position may be after
// the newest event. New events are sent nevertheless.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		background(t, s.Run)
		newest := s.publishTools(3) + 3
		eventually(t, "the endpoint is at the end of the journal", func() bool { return s.find(e.ID).Position == newest })
		r.reset()
		check.OK(t, s.Store.Write.Endpoint.UpdateOneID(e.ID).SetPosition(newest+1_000).Exec(t.Context()))
		eventually(t, "the endpoint moves back to the end", func() bool { return s.find(e.ID).Position == newest })
		first := s.publishTools(2)
		r.wait(t, 3)
		check.Slices(t, r.ids(), ids(first, 3))
	})
}

// A server that stops while it sends records the responses that it got. The next
// server sends the remaining events.
func TestStopWhileSending(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.timing.attempt, s.timing.prompt = time.Hour, defaultTiming.prompt
		responses := &responseCounter{RoundTripper: s.transport}
		s.transport = responses
		r, e := s.addReceiver()
		first := s.publishTools(39)
		prompt := ids(first, 4)
		hold := make(chan struct{})
		r.respond(func(_ int, w http.ResponseWriter, req *http.Request) {
			id := req.Header.Get("webhook-id")
			if slices.Contains(prompt, id) {
				return
			}
			if id == ids(first+4, 1)[0] { // responds, but its body does not end
				w.(http.Flusher).Flush()
			}
			select {
			case <-hold:
			case <-req.Context().Done():
			}
		})
		stop := background(t, s.Run)
		r.wait(t, 4+maxPending)
		eventually(t, "five responses have arrived", func() bool { return responses.n.Load() == 5 })
		stop()
		check.Equal(t, len(s.attempts(e)), 5, "attempts")
		at := s.find(e.ID)
		check.Equal(t, at.Position, first+4)
		check.Equal(t, at.Failures, 0)
		check.Equal(t, len(s.deliveries(e)), 0)
		close(hold)
		r.reset()
		again := New(s.Config)
		again.timing = testTiming
		background(t, again.Run)
		r.wait(t, 35)
		check.Slices(t, r.ids(), ids(first+5, 35))
	})
}

// responseCounter counts responses.
type responseCounter struct {
	http.RoundTripper
	n atomic.Int32
}

func (c *responseCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		c.n.Add(1)
	}
	return response, err
}

// CloseIdleConnections is called when Run ends.
func (c *responseCounter) CloseIdleConnections() {
	c.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// Requests go to the path and query of the URL.
func TestRequestLine(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	requests := make(chan string, 1)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("User-Agent"))
	}))
	defer r.Close()
	for path, want := range map[string]string{"": "/", "/a/b?c=d&e#f": "/a/b?c=d&e"} {
		e := s.add(NewEndpoint{URL: r.URL + path})
		attempt := check.Try(s.Test(t.Context(), e)).OK(t)
		check.Must(t, attempt.Delivered, true)
		check.Equal(t, <-requests, "POST "+want+" palmares-webhooks")
	}
}

// An endpoint that is activated while a round skips its missed events gets the
// events published from then on.
func TestActivationWhileSkipping(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		accounts := auth.NewAccounts(s.Store)
		for what, change := range map[string]struct{ deactivate, activate func(id int) error }{
			"pause": {
				func(id int) error { return s.Pause(t.Context(), s.find(id)) },
				func(id int) error { return s.Resume(t.Context(), s.find(id)) },
			},
			"plan change": {
				func(int) error { return accounts.SetPlan(t.Context(), s.owner, auth.Developer) },
				func(int) error { return accounts.SetPlan(t.Context(), s.owner, auth.Pro) },
			},
		} {
			r, e := s.addReceiver()
			check.OK(t, change.deactivate(e.ID))
			seen := s.find(e.ID) // what the round read
			check.OK(t, s.skip(t.Context(), seen))
			check.OK(t, change.activate(e.ID))
			first := s.publishTools(3)
			check.OK(t, s.Replay(t.Context(), s.find(e.ID), ids(first+1, 1)[0]))
			check.OK(t, s.skip(t.Context(), seen))
			s.sendDue(e)
			check.Slices(t, slices.Sorted(slices.Values(r.ids())), ids(first, 4), "after %s", what)
		}
	})
}

// An account may be deleted between the two queries that read an endpoint.
func TestDeletedWhileRead(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		e := s.add(NewEndpoint{URL: newReceiver(t).URL})
		var deleting sync.Once
		s.Store.Read.Account.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				deleting.Do(func() { check.Equal(t, auth.NewAccounts(s.Store).Delete(ctx, s.owner), nil) })
				return next.Query(ctx, q)
			})
		}))
		s.sendDue(e)
	})
}

// Events that were sent are not sent again if reading the next ones fails.
func TestReadingFailsDuringRound(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addReceiver()
	first := s.publishTools(pageSize)
	failing := true
	s.Store.Read.JournalEntry.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
			if failing && len(r.all()) > 0 {
				return nil, errors.New("no database")
			}
			return next.Query(ctx, q)
		})
	}))
	check.Try(s.round(t.Context(), always, e.ID)).Fails(t)
	failing = false
	s.sendDue(e)
	check.Slices(t, r.ids(), ids(first, pageSize+1))
}

// rejectSlug makes the receiver reject events with a slug.
func (r *receiver) rejectSlug(t *testing.T, slug string) {
	r.respond(func(n int, w http.ResponseWriter, _ *http.Request) {
		if slices.ContainsFunc(r.all()[n-1].events(t), func(event sentEvent) bool { return event.Slug == slug }) {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
}

// catalog.published waits until every earlier event was delivered or has no attempts
// left, and delays only later catalog.published events.
func TestReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"delivered", "exhausted", "replayed"} {
		eachFixture(t, func(t *testing.T, s *fixture) {
			s.freezeClock()
			r, e := s.addReceiver()
			r.rejectSlug(t, "tool-1")
			first := s.publishTools(3)
			s.sendDue(e)
			second := s.publish(toolCreated("later", "code"))
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, r.ids(), append(ids(first, 3), ids(second, 1)...))
			rows := s.deliveries(e)
			check.True(t, len(rows) == 3 && !rows[1].NextAt.Before(rows[0].NextAt) && rows[1].Held && rows[2].Held, "got deliveries %v, want two held ones", rows)
			r.reset()
			switch end {
			case "delivered":
				r.respondStatus(200)
				s.clock.advance(6 * time.Second)
			case "replayed":
				r.respondStatus(200)
				check.OK(t, s.Replay(t.Context(), e, ids(first+1, 1)[0]))
			case "exhausted":
				for range len(retries) - 1 {
					s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
					s.sendDue(e)
				}
				check.Slices(t, slices.Compact(r.ids()), ids(first+1, 1), "before the last attempt")
				r.reset()
				s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
			}
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, r.ids(), slices.Concat(ids(first+1, 1), ids(first+3, 1), ids(second+1, 1)), end)
			check.Equal(t, len(s.deliveries(e)), 0, end)
		})
	}
}

// Events before a replayed catalog.published are sent first.
func TestReplayedReleaseWaits(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		for _, batches := range []bool{false, true} {
			r := newReceiver(t)
			e := s.add(NewEndpoint{URL: r.URL, Batches: batches})
			first := s.publishTools(2)
			check.OK(t, s.Replay(t.Context(), e, ids(first+2, 1)[0])) // before it was sent
			s.sendDue(e)
			s.sendDue(e)
			check.Slices(t, slices.Concat(r.batches(t)...), ids(first, 3), "batches %t", batches)
			check.Equal(t, len(s.deliveries(e)), 0, "batches %t", batches)
		}
	})
}
