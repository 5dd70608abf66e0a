package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/dev/check"
)

func TestMiddleware(t *testing.T) {
	for name, c := range map[string]struct {
		header     []string
		keys, tags string
	}{
		"public":    {[]string{"Cache-Control", "s-maxage=60"}, "all release-41", "all,release-41"},
		"own keys":  {[]string{"Cache-Control", "s-maxage=60", KeysHeader, "all tool-plume"}, "all tool-plume", "all,tool-plume"},
		"immutable": {[]string{"Cache-Control", "public, immutable", KeysHeader, "all release-41"}, "all", "all"},
		"private":   {[]string{"Cache-Control", "private, no-cache", KeysHeader, "all tool-plume"}, "", ""},
		"with key":  {[]string{"Cache-Control", "s-maxage=60", "CDN-Cache-Control", "private, no-store", KeysHeader, "all"}, "", ""},
		"no-store":  {[]string{"Cache-Control", "no-store"}, "", ""},
		"none":      {nil, "", ""},
	} {
		for _, tags := range []bool{false, true} {
			handler := Middleware(func() int { return 41 }, tags)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(c.header); i += 2 {
					w.Header().Set(c.header[i], c.header[i+1])
				}
				w.WriteHeader(http.StatusEarlyHints)
				_, _ = io.WriteString(w, "body")
			}))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			want := c.tags
			if !tags {
				want = ""
			}
			got := w.Header()
			check.Equal(t, got.Get(KeysHeader), c.keys, name)
			check.Equal(t, got.Get("Cache-Tag"), want, name)
		}
	}
}

// The keys follow the served release, and are those at the end of the handler, whatever
// responses of its own it has sent before.
func TestKeysOfReleases(t *testing.T) {
	release := 41
	handler := Middleware(func() int { return release }, false)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Cache-Control", "s-maxage=60")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "body")
	}))
	server := httptest.NewServer(handler) // a recorder takes the hints for the response
	defer server.Close()
	for _, want := range []int{41, 41, 42, 41} {
		release = want
		response := check.Try(server.Client().Get(server.URL)).OK(t)
		body := check.Try(io.ReadAll(response.Body)).OK(t)
		if got := response.Header.Get(KeysHeader); got != "all "+Release(want) || response.StatusCode != http.StatusNotFound || string(body) != "body" {
			t.Errorf("got %d %q with keys %q, want 404 with those of release %d", response.StatusCode, body, got, want)
		}
	}
	check.Equal(t, Header(Tool("a"), Category("b"))[0], "all tool-a category-b")
}

func TestIsSlug(t *testing.T) {
	for text, want := range map[string]bool{"code": true, "a-1": true, "": false, "a b": false, "Code": false, "é": false, strings.Repeat("a", 80): true, strings.Repeat("a", 81): false, "a\n": false} {
		check.Equal(t, IsSlug(text), want, "%q", text)
	}
}

// recorder records purges, and refuses them while it is down.
type recorder struct {
	mu   sync.Mutex
	down bool
	sent []string
}

func (r *recorder) send(_ context.Context, keys ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return errors.New("down")
	}
	r.sent = append(r.sent, strings.Join(keys, " "))
	return nil
}

// take returns what was sent since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

func (r *recorder) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// newTestPurger returns a running purger. Each release changes one tool.
func newTestPurger(t *testing.T, r *recorder) *Purger {
	p := NewPurger(Endpoint{URL: "http://edge.test"}, func(_ context.Context, after, upTo int) (keys []string, err error) {
		for release := after + 1; release <= upTo; release++ {
			keys = append(keys, Tool(fmt.Sprint(release)))
		}
		return keys, nil
	}, slog.New(slog.DiscardHandler))
	p.send = r.send
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return p
}

// Each release is purged at once and again, and a restored backup purges everything.
func TestPurgeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		p := newTestPurger(t, r)
		for _, c := range []struct {
			before, upTo int
			want         string
		}{
			{1, 2, "release-1 tool-2"},
			{2, 4, "release-2 release-3 tool-3 tool-4"},
			{4, 4, "all"},
			{4, 2, "all"},
			{2, 1200, "all"},
		} {
			p.Release(c.before, c.upTo)
			synctest.Wait()
			check.Slices(t, r.take(), []string{c.want}, "release %d after %d: at once", c.upTo, c.before)
			time.Sleep(secondPurge)
			synctest.Wait()
			check.Slices(t, r.take(), []string{c.want}, "release %d after %d: again", c.upTo, c.before)
		}
		check.Equal(t, p.Accepted.Load(), 10)
		check.Equal(t, p.Failed.Load(), 0)
	})
}

// A purge is retried for a minute. What it missed is purged with the next release, whose
// own purge does not wait.
func TestPurgeRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		p := newTestPurger(t, r)
		r.setDown(true)
		p.Release(1, 2)
		time.Sleep(30 * time.Second)
		r.setDown(false)
		time.Sleep(lastRetry + secondPurge)
		check.Slices(t, r.take(), []string{"release-1 tool-2", "release-1 tool-2"}, "after an outage of 30 s: want two purges")
		r.setDown(true)
		p.Release(2, 3)
		time.Sleep(2 * time.Minute)
		r.setDown(false)
		check.Equal(t, p.Failed.Load(), 1, "after an outage of two minutes: failed purges")
		p.Release(3, 4)
		synctest.Wait()
		check.Slices(t, r.take(), []string{"release-2 release-3 tool-3 tool-4"}, "after an outage of two minutes: want the changes of both releases")
	})
}

// Keys are sent in batches, and many of them purge everything.
func TestPurgeBatches(t *testing.T) {
	for _, c := range []struct{ keys, length, requests int }{{600, 10, 3}, {200, 85, 3}, {999, 7, 4}, {1000, 7, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			p := newTestPurger(t, r)
			var all []string
			for i := range c.keys {
				all = append(all, fmt.Sprintf("%0*d", c.length, i))
			}
			p.changed = func(context.Context, int, int) ([]string, error) { return all, nil }
			p.Release(1, 2)
			synctest.Wait()
			sent := r.take()
			check.Equal(t, len(sent), c.requests, "%d keys: requests", c.keys)
			want := "release-1 " + strings.Join(all, " ")
			if c.keys == MaxChanged {
				want = All
			}
			check.Equal(t, strings.Join(sent, " "), want, "%d keys", c.keys)
			for _, keys := range sent {
				if len(keys) > 8_000 || len(strings.Fields(keys)) > 256 {
					t.Errorf("got %d keys of %d bytes in a request, want at most 256 and 8000", len(strings.Fields(keys)), len(keys))
				}
			}
		})
	}
}

// A request has the keys and the credential, and redirects do not get it.
func TestEndpoint(t *testing.T) {
	var got *http.Request
	var body []byte
	status := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	e := Endpoint{server.URL + "/purge", "Authorization: Bearer s3cret"}
	check.OK(t, e.Purge(t.Context(), "release-41", "tool-plume"))
	check.Equal(t, got.Method, http.MethodPost, got.Header)
	check.Equal(t, got.Header.Get(KeysHeader), "release-41 tool-plume", got.Header)
	check.Equal(t, got.Header.Get("Authorization"), "Bearer s3cret", got.Header)
	check.Equal(t, string(body), `{"surrogate_keys":["release-41","tool-plume"]}`, got.Header)
	status = http.StatusTemporaryRedirect
	err := e.Purge(t.Context(), All)
	check.True(t, err != nil && err.Error() == "the edge responded with status 307" && got.URL.Path == "/purge", "got %v from %s, want the status of the redirect", err, got.URL)
	server.Close()
	if err := e.Purge(t.Context(), All); err == nil || strings.Contains(err.Error(), "http") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want an error without the URL and the credential", err)
	}
}

func TestSettings(t *testing.T) {
	for address, valid := range map[string]bool{"https://edge.example/purge?x=1": true, "http://127.0.0.1:6081/.purge": true, "edge.example": false, "ftp://edge.example": false, "https://": false, "https://u:p@edge.example/": false} {
		check.Equal(t, CheckURL(address) == nil, valid, address)
	}
	for header, valid := range map[string]bool{"Fastly-Key: abc": true, "Authorization: Bearer a b": true, "Fastly-Key": false, ": x": false, "A: b\nC: d": false, "A:": false} {
		check.Equal(t, CheckHeader(header) == nil, valid, header)
	}
}

// FuzzIsSlug checks that a text from a request becomes one key of a response, in both
// headers, or none.
func FuzzIsSlug(f *testing.F) {
	for _, text := range []string{"plume", "a b", "a,b", "", "all", "é", "a\r\nSet-Cookie: b=c", strings.Repeat("a", 81)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !IsSlug(text) {
			check.True(t, text == "" || len(text) > 80 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") != "", "%q: got no slug, want one", text)
			return
		}
		keys := strings.Fields(Header(Tool(text), Category(text), Release(7))[0])
		if len(keys) != 4 || strings.ContainsAny(keys[1], ",;\"\\") || keys[1] == keys[2] || keys[1] == keys[3] || keys[2] == keys[3] || keys[1] == All {
			t.Errorf("%q: got %q, want four different keys", text, keys)
		}
	})
}
