package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// publish imports a feed as the program does.
func publish(t *testing.T, s *store.Store, opts synth.Options) {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(t.Context(), &buf, opts); err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(buf.Bytes()), feed.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
}

// What an import changes is told, signed, in order, once, and as it is.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		publish(t, db, synth.Options{Tools: 40, Seed: 1})
		before, err := journal.Newest(t.Context(), db.Current().JournalEntry)
		if err != nil {
			t.Fatal(err)
		}
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL + "/hook?for=me"})
		begun := time.Now()
		background(t, s.Run)
		publish(t, db, synth.Options{Tools: 40, Seed: 1, Revision: 5})
		events, err := journal.Read(t.Context(), db.Current().JournalEntry, journal.Query{After: before, Limit: 1000})
		if err != nil || len(events) < 5 {
			t.Fatal(len(events), err)
		}
		got := r.wait(t, len(events))
		hook, err := standardwebhooks.NewWebhook(e.Secret)
		if err != nil {
			t.Fatal(err)
		}
		for i, one := range got {
			if err := hook.Verify(one.body, one.header); err != nil {
				t.Error(err)
			}
			if id := one.header.Get("webhook-id"); id != events[i].ID() {
				t.Errorf("%s came at the place of %s", id, events[i].ID())
			}
			if !bytes.Equal(one.body, events[i].JSON()) || one.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s", one.header.Get("Content-Type"), one.body)
			}
			at, err := strconv.ParseInt(one.header.Get("webhook-timestamp"), 10, 64)
			if err != nil || at < begun.Unix() || at > time.Now().Unix() {
				t.Errorf("timestamp %d", at)
			}
		}
		// What comes after another event would have come before it.
		tell(t, db, 0)
		r.wait(t, len(events)+1)
		eventually(t, "it is written down", func() bool { return len(s.attempts(e)) == len(events)+1 })
		eventually(t, "nothing waits", func() bool { return len(s.waiting(e)) == 0 })
		if len(r.all()) != len(events)+1 {
			t.Errorf("got %d events, want %d", len(r.all()), len(events)+1)
		}
		if s.logs.String() != "" {
			t.Error(s.logs)
		}
	})
}

// Two servers do not send twice.
func TestTwoServersSendOnce(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	first := newSite(t, testkit.Open(t, cfg))
	second := New(first.Config)
	second.Store, second.timing = testkit.Open(t, cfg), testTiming
	receivers := []*receiver{newReceiver(t), newReceiver(t), newReceiver(t)}
	for _, r := range receivers {
		first.add(Wish{URL: r.URL})
	}
	background(t, first.Run)
	background(t, second.Run)
	var want []string
	for range 5 {
		want = append(want, ids(tell(t, first.Store, 60), 61)...)
	}
	for _, r := range receivers {
		r.wait(t, len(want))
	}
	want = append(want, ids(tell(t, first.Store, 0), 1)...) // after anything that is sent twice
	for _, r := range receivers {
		r.wait(t, len(want))
	}
	for _, r := range receivers {
		if !slices.Equal(r.ids(), want) {
			t.Errorf("%d came for %d", len(r.all()), len(want))
		}
	}
}

// Who is slow does not keep others waiting, and gets all.
func TestSlowReceiverDelaysNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	s.timing.prompt = defaultTiming.prompt
	s.timing.work = 300 * time.Millisecond
	slow, quick := newReceiver(t), newReceiver(t)
	var busy, most atomic.Int32
	quickIsThrough := make(chan struct{})
	slow.answers(func(int, http.ResponseWriter, *http.Request) {
		if n := busy.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-quickIsThrough
		time.Sleep(200 * time.Millisecond)
		busy.Add(-1)
	})
	s.add(Wish{URL: slow.URL})
	s.add(Wish{URL: quick.URL})
	background(t, s.Run)
	first := tell(t, s.Store, 29)
	quick.wait(t, 30)
	if got := len(slow.all()); got > maxPending {
		t.Errorf("the slow one has had %d of 30 already", got)
	}
	close(quickIsThrough)
	if !sameSet(quick.ids(), ids(first, 30)) {
		t.Error(quick.ids())
	}
	// It takes longer than one job: nothing is cut off, so nothing comes twice.
	slow.wait(t, 30)
	eventually(t, "all is answered", func() bool { return busy.Load() == 0 })
	last := tell(t, s.Store, 0) // after anything that is sent twice
	slow.wait(t, 31)
	if !sameSet(slow.ids(), append(ids(first, 30), ids(last, 1)...)) {
		t.Error(slow.ids())
	}
	if most.Load() > maxPending {
		t.Errorf("%d at once", most.Load())
	}
}

// sameSet is for what may overtake each other on its way.
func sameSet(got, want []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// A round is as long as it may be, and goes on in the next.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 2*roundSize+50)
		for more := true; more; {
			var err error
			if more, err = s.round(t.Context(), always, e.ID); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(r.ids(), ids(first, 2*roundSize+51)) {
			t.Errorf("%d came", len(r.all()))
		}
	})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	duel := func(slug, category, other string) journal.Entry {
		return journal.Entry{Kind: journal.ComparisonCreated, Event: journal.EventComparisonPublished, Slug: slug, Category: category, OtherCategory: other, After: []byte(`{"slug":"` + slug + `"}`)}
	}
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		type wanted struct {
			wish Wish
			want string
		}
		all := []wanted{
			{Wish{}, "code voix code-voix voix-chat hidden. release"},
			{Wish{Categories: []string{"voix"}}, "voix code-voix voix-chat release"},
			{Wish{Categories: []string{"chat", "code"}}, "code code-voix voix-chat release"},
			{Wish{Types: []string{journal.EventToolCreated}}, "code voix hidden."},
			{Wish{Types: []string{journal.EventToolCreated}, Categories: []string{"code"}}, "code"},
			{Wish{Types: []string{journal.EventCatalogPublished}, Categories: []string{"code"}}, "release"},
			{Wish{Types: []string{journal.EventComparisonPublished, journal.EventToolCreated}, Categories: []string{"voix"}}, "voix code-voix voix-chat"},
			{Wish{Types: []string{journal.EventToolRemoved}}, ""},
			{Wish{Categories: []string{"nobody"}}, "release"},
		}
		receivers := make([]*receiver, len(all))
		for i := range all {
			receivers[i] = newReceiver(t)
			all[i].wish.URL = receivers[i].URL
			s.add(all[i].wish)
		}
		quiet := toolCreated("untold", "code")
		quiet.Event = ""
		tellAll(t, db, toolCreated("code", "code"), toolCreated("voix", "voix"), quiet,
			duel("code-voix", "code", "voix"), duel("voix-chat", "voix", "chat"), toolCreated("hidden.", "hidden"))
		list, err := s.List(t.Context(), s.owner)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range list {
			s.sendDue(e)
			var got []string
			for _, one := range receivers[i].all() {
				var body struct{ Slug, Type string }
				if err := json.Unmarshal(one.body, &body); err != nil {
					t.Fatal(err)
				}
				if body.Slug == "" {
					body.Slug = "release"
				}
				got = append(got, body.Slug)
			}
			if strings.Join(got, " ") != all[i].want {
				t.Errorf("%+v: got %v", all[i].wish, got)
			}
			// What it does not want is behind it, too.
			if newest, _ := journal.Newest(t.Context(), db.Current().JournalEntry); s.find(e.ID).Position != newest {
				t.Errorf("%+v: at %d of %d", all[i].wish, s.find(e.ID).Position, newest)
			}
		}
	})
}

// A journal may end before an endpoint's position, after a backup of it was
// restored. What comes then is sent.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		background(t, s.Run)
		newest := tell(t, db, 3) + 3
		eventually(t, "it is at the journal's end", func() bool { return s.find(e.ID).Position == newest })
		r.forget()
		if err := db.Write.Endpoint.UpdateOneID(e.ID).SetPosition(newest + 1_000).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is back there", func() bool { return s.find(e.ID).Position == newest })
		first := tell(t, db, 2)
		r.wait(t, 3)
		if !slices.Equal(r.ids(), ids(first, 3)) {
			t.Error(r.ids())
		}
	})
}

// The server that ends in the middle writes down what it knows, and what it
// does not know is sent by the next.
func TestStopInTheMiddle(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.timing.attempt, s.timing.prompt = time.Hour, defaultTiming.prompt
		answered := &answerCount{RoundTripper: s.client.Transport}
		s.client.Transport = answered
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 39)
		prompt := ids(first, 4)
		hold := make(chan struct{})
		r.answers(func(_ int, w http.ResponseWriter, req *http.Request) {
			id := req.Header.Get("webhook-id")
			if slices.Contains(prompt, id) {
				return
			}
			if id == ids(first+4, 1)[0] { // has answered, but does not end
				w.(http.Flusher).Flush()
			}
			select {
			case <-hold:
			case <-req.Context().Done():
			}
		})
		stop := background(t, s.Run)
		r.wait(t, 4+maxPending)
		eventually(t, "five are answered", func() bool { return answered.n.Load() == 5 })
		stop()
		if got := s.attempts(e); len(got) != 5 {
			t.Errorf("%d attempts are known", len(got))
		}
		if at := s.find(e.ID); at.Position != first+4 || at.Failures != 0 || len(s.waiting(e)) != 0 {
			t.Errorf("it is at %d of %d, with %d failures", at.Position, first, at.Failures)
		}
		close(hold)
		r.forget()
		again := New(s.Config)
		again.timing = testTiming
		background(t, again.Run)
		r.wait(t, 35)
		if !slices.Equal(r.ids(), ids(first+5, 35)) {
			t.Error(r.ids())
		}
	})
}

// answerCount counts the answers that have begun.
type answerCount struct {
	http.RoundTripper
	n atomic.Int32
}

func (c *answerCount) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		c.n.Add(1)
	}
	return response, err
}

// CloseIdleConnections is what Run asks for in the end.
func (c *answerCount) CloseIdleConnections() {
	c.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// What is told to an endpoint with an empty path and one with a query goes
// where it should.
func TestWhereTo(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	asked := make(chan string, 1)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("User-Agent"))
	}))
	defer r.Close()
	for path, want := range map[string]string{"": "/", "/a/b?c=d&e#f": "/a/b?c=d&e"} {
		e := s.add(Wish{URL: r.URL + path})
		attempt, err := s.Test(t.Context(), e)
		if err != nil || !attempt.Delivered {
			t.Fatal(attempt, err)
		}
		if got := <-asked; got != "POST "+want+" palmares-webhooks" {
			t.Error(got)
		}
	}
}
