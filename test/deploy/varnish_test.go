package deploy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/edge"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// Varnish with deploy/varnish/default.vcl serves what the server does after each
// release, while clients send requests, and stores nothing that is private.
func TestEdgeWithVarnish(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		editions := check.Try(demo.Editions()).OK(t)
		publish := func(number int) {
			blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.WriteFile(t, "feed.ndjson", editions[number-1].Feed)))
		}
		publish(1)
		front := testkit.FreeAddress(t)
		s := blackbox.Serve(t, cfg, "--trusted-proxies", "127.0.0.1", "--purge-url", "http://"+front+"/.purge", "--purge-header", testkit.VarnishToken)
		testkit.StartVarnish(t, front, s.Address)
		paths := []string{
			"/api/v1/tools", "/api/v1/tools?category=code", "/api/v1/tools?category=image&score_min=7", "/api/v1/stats", "/api/v1/categories", "/api/v1/comparatifs",
			"/graphql?query=%7Bstats%7BtoolsTotal%7D%7D", "/feeds/changes.atom", "/sitemap.xml", "/en/", "/fr/tools", "/en/categories/code",
		}
		for _, slug := range toolSlugs(t, s) {
			paths = append(paths, "/api/v1/tools/"+slug, "/api/v1/pricing/"+slug, "/en/tools/"+slug)
		}

		stop, ended := make(chan struct{}), make(chan struct{})
		// Misses of half of the paths are in flight during purges. The others are requested
		// only after them, so that a stale response is not replaced before.
		go func() {
			defer close(ended)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					if _, err := (caller{}).try(t.Context(), front, paths[i%(len(paths)/2)*2]); err != nil {
						t.Error(err)
						return
					}
				}
			}
		}()
		hits := 0
		for number := 1; number <= len(editions); number++ {
			if number > 1 {
				publish(number)
			}
			wait.Until(t, "the edge is purged", func() bool {
				return strings.Contains(s.Log.String(), `"msg":"edge purged","release":`+fmt.Sprint(number)+`,`) &&
					strings.Count(s.Log.String(), `"again":true`) >= number
			})
			for _, path := range paths {
				got, want := caller{}.ask(t, front, path), caller{}.ask(t, s.Address, path)
				check.Equal(t, got.StatusCode, want.StatusCode, "release %d, %s", number, path)
				check.Equal(t, string(got.body), string(want.body), "release %d, %s", number, path)
				if got.Header.Get("X-Cache") == "hit" && strings.HasPrefix(path, "/api/v1/tools/") && got.Header.Get("X-Service-Release") != fmt.Sprint(number) {
					hits++ // stored in an earlier release
				}
				if name := edge.KeysHeader; want.StatusCode == http.StatusOK && (want.Header.Get(name) == "" || got.Header.Get(name)+got.Header.Get("Xkey") != "") {
					t.Errorf("%s: got keys %q from the server and %q from Varnish, want some and none", path, want.Header.Get(name), got.Header.Get(name)+got.Header.Get("Xkey"))
				}
			}
		}
		close(stop)
		<-ended
		check.True(t, hits != 0, "got no tool from an earlier release, want some that have not changed")

		// Requests that depend on the caller bypass Varnish.
		key := blackbox.NewKey(t, cfg, "developer")
		for _, c := range []caller{
			{name: "key", headers: []string{"Authorization", "Bearer " + key}},
			{name: "cookie", headers: []string{"Cookie", "a=b"}},
			{name: "event stream", headers: []string{"Accept", "text/event-stream"}},
		} {
			c.ask(t, front, "/api/v1/stats")
			check.Equal(t, c.ask(t, front, "/api/v1/stats").Header.Get("X-Cache"), "miss", "%s: response from Varnish", c.name)
		}
		for name, c := range map[string]caller{
			"no token": {method: http.MethodPost}, "another token": {method: http.MethodPost, headers: []string{"X-Purge-Token", "other"}},
			"another method": {headers: []string{"X-Purge-Token", "s3cret"}},
		} {
			check.Equal(t, c.ask(t, front, "/.purge").StatusCode, http.StatusForbidden, "purge with %s", name)
		}
		text := s.Log.String()
		check.True(t, !strings.Contains(text, "s3cret"), "got the credential in the log, want it hidden")
	})
}

// toolSlugs returns the slugs of all tools.
func toolSlugs(t *testing.T, s *blackbox.Server) (slugs []string) {
	t.Helper()
	_, body := s.Get(t, "/api/v1/tools?limit=200")
	for _, item := range body["data"].([]any) {
		slugs = append(slugs, item.(map[string]any)["slug"].(string))
	}
	return slugs
}
