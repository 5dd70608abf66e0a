package saved_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// A private query is invisible to everyone except its account.
func TestPrivateQueries(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		const unknown, unknownHash = "/q/ana/unknown", "/q/0123456789abcdef0123456789abcdef"
		named, permanent := s.save(t, ana, "secret", best, private)
		refused := func(name, path, similar string, headers ...string) {
			t.Helper()
			got, want := s.get(t, path, headers...), s.get(t, similar, headers...)
			for _, r := range []*http.Response{got.Response, want.Response} {
				for _, header := range []string{"X-Request-Id", "Date", "X-Ratelimit-Remaining", "Ratelimit"} {
					r.Header.Del(header)
				}
			}
			if got.StatusCode != 404 || got.body != want.body || fmt.Sprint(got.Header) != fmt.Sprint(want.Header) {
				t.Errorf("%s: got %d %s %v, want the same as for an unknown URL: %d %s %v", name, got.StatusCode, got.body, got.Header, want.StatusCode, want.body, want.Header)
			}
		}
		for range 2 { // before and after the response is cached
			refused("anonymous", named, unknown)
			refused("anonymous, by hash", permanent, unknownHash)
			refused("another account", named, unknown, s.as(bea)...)
			refused("another account, by hash", permanent, unknownHash, s.as(bea)...)
			refused("a wrong token", named+"?token=qt_AAAAAAAAAAAAAAAAAAAAAAAAAA", unknown+"?token=qt_AAAAAAAAAAAAAAAAAAAAAAAAAA")
			refused("CSV", named+".csv", unknown+".csv")
			for _, path := range []string{named, permanent} {
				r := s.get(t, path, s.as(ana)...).want(t, 200, `[{"slug":`)
				check.Equal(t, r.Header.Get("Cache-Control"), "private, no-cache", "%s: %v", path, r.Header)
				check.Equal(t, r.Header.Get("Cdn-Cache-Control"), "private, no-store", "%s: %v", path, r.Header)
			}
			s.get(t, named, "If-None-Match", s.get(t, named, s.as(ana)...).Header.Get("Etag")).want(t, 404, "")
		}

		// The same text saved by another account is another query.
		other, same := s.save(t, bea, "mine", best)
		check.Equal(t, same, permanent, "hash")
		refused("a name whose text is public elsewhere", named, unknown)
		for _, r := range []got{s.get(t, other), s.get(t, permanent)} {
			if r.want(t, 200, `[{"slug":`); strings.Contains(r.Header.Get("Cache-Control"), "private") {
				t.Errorf("got %s, want a shared response", r.Header.Get("Cache-Control"))
			}
		}
		s.save(t, bea, "mine", best, private)
		wait.Until(t, "the query is private", func() bool { return s.get(t, permanent).StatusCode == 404 })
		s.get(t, permanent, s.as(bea)...).want(t, 200, `[{"slug":`)

		// A token is for one query.
		token := func(email, name string) string {
			t.Helper()
			token, err := s.other.SetToken(t.Context(), s.owner(t, email), name)
			check.OK(t, err)
			return "?token=" + token
		}
		s.save(t, ana, "other", best+"#", private)
		query := token(ana, "secret")
		r := s.get(t, named+".csv"+query).want(t, 200, "slug,")
		if r.Header.Get("X-Ratelimit-Tier") != "free" || r.Header.Get("Cdn-Cache-Control") != "private, no-store" || r.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("got %v, want the owner's quota and a private response", r.Header)
		}
		s.get(t, permanent+query).want(t, 200, `[{"slug":`)
		refused("a token of another query", "/q/ana/other"+query, unknown+query)
		refused("a token of another account", "/q/bea/mine"+query, "/q/bea/unknown"+query)
		newer := token(ana, "secret")
		wait.Until(t, "the former token", func() bool { return s.get(t, named+query).StatusCode == 404 })
		s.get(t, named+newer).want(t, 200, `[{"slug":`)
		check.OK(t, s.other.RevokeToken(t.Context(), s.owner(t, ana), "secret"))
		wait.Until(t, "the revoked token", func() bool { return s.get(t, named+newer).StatusCode == 404 })
		public, _ := s.save(t, ana, "public", best+"# public")
		s.get(t, public).want(t, 200, "[")
		s.get(t, public+newer).want(t, 401, "The token is not valid")

		// Only the account sees the private ones in its document.
		paths := func(headers ...string) int {
			doc, err := openapi3.NewLoader().LoadFromData([]byte(s.get(t, "/q/ana/openapi.json", headers...).want(t, 200, `"openapi"`).body))
			check.OK(t, err)
			check.OK(t, doc.Validate(t.Context()))
			return doc.Paths.Len()
		}
		if all, others, nobody := paths(s.as(ana)...), paths(s.as(bea)...), paths(); all != 9 || others != 3 || nobody != 3 {
			t.Errorf("got %d, %d and %d paths, want those of 3 queries in 3 formats for the account and of one for others", all, others, nobody)
		}
	})
}

// Requests with a token count exactly against the quota of its owner, together
// with those of keys.
func TestTokenQuota(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		named, permanent := s.save(t, ana, "sheet", best, private)
		created, err := s.other.SetToken(t.Context(), s.owner(t, ana), "sheet")
		check.OK(t, err)
		token := "?token=" + created
		etag := s.get(t, named+".csv"+token).Header.Get("Etag") // the first counted request
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 8 {
			all.Go(func() {
				for i := range 130 {
					path, headers := named+".csv"+token, []string(nil)
					switch i % 3 {
					case 1:
						path, headers = permanent, s.as(ana)
					case 2:
						path += fmt.Sprintf("&limit=%d", 1+i%5)
					}
					r := s.get(t, path, headers...)
					mu.Lock()
					statuses[r.StatusCode]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		check.Equal(t, statuses[200], 999, statuses)
		check.Equal(t, statuses[429], 8*130-999, statuses)
		r := s.get(t, named+".csv"+token).want(t, 429, "The daily quota of 1000 requests is used up")
		if r.Header.Get("Retry-After") == "" || r.Header.Get("X-Ratelimit-Remaining") != "0" {
			t.Errorf("got %v, want when to retry", r.Header)
		}
		s.get(t, named+token, "Accept", "text/html").want(t, 200, "<!doctype html>") // pages are free
		s.get(t, named+token+"&format=json", "Accept", "text/html").want(t, 429, "used up")
		s.get(t, named+".csv"+token, "If-None-Match", etag).want(t, 304, "")
		s.get(t, named).want(t, 404, "") // anonymous callers have their own quota
		s.get(t, "/q/ana/openapi.json", s.as(ana)...).want(t, 200, `"/q/ana/sheet"`)
	})
}

// A downgrade suspends the newest queries; only their owner sees the reason.
func TestSuspendedQueries(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		plan := func(plan auth.Plan) {
			t.Helper()
			check.OK(t, auth.NewAccounts(s.Store).SetPlan(t.Context(), s.owner(t, ana), plan))
		}
		plan(auth.Pro)
		for i := range 6 {
			s.save(t, ana, fmt.Sprintf("q%d", i), fmt.Sprintf("%s#%d", best, i))
		}
		s.get(t, "/q/ana/q5").want(t, 200, "[")
		plan(auth.Developer)
		wait.Until(t, "the newest is suspended", func() bool { return s.get(t, "/q/ana/q5").StatusCode == 404 })
		wait.Until(t, "the owner's key has the new plan", func() bool {
			return s.get(t, "/q/ana/q4", s.as(ana)...).Header.Get("X-Ratelimit-Tier") == "free"
		})
		s.get(t, "/q/ana/q5", s.as(ana)...).want(t, 403, "This saved query is suspended")
		s.get(t, "/q/ana/q4").want(t, 200, "[")
		plan(auth.Pro)
		wait.Until(t, "the newest is active again", func() bool { return s.get(t, "/q/ana/q5").StatusCode == 200 })
	})
}
