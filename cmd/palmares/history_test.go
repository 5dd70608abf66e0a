package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// readable runs palmares releases and returns the number of each release and
// whether it can be read.
func readable(t *testing.T, cfg store.Config) (numbers string) {
	t.Helper()
	for line := range strings.Lines(blackbox.MustRun(t, blackbox.Command(t, cfg, "releases")).Out) {
		if fields := strings.Fields(line); fields[0] != "release" {
			numbers += fields[0] + " " + fields[len(fields)-1] + "\n"
		}
	}
	return numbers
}

// publishEditions imports the editions of the demo catalog.
func publishEditions(t *testing.T, cfg store.Config) {
	t.Helper()
	editions := check.Try(demo.Editions()).OK(t)
	for _, edition := range editions {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "feed.ndjson", edition.Feed)))
	}
}

// A running server stops serving pruned releases, even from its cache, and
// continues to serve the others.
func TestPruneWhileServing(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		key := blackbox.NewKey(t, cfg, "pro")
		withKey := []string{"Authorization", "Bearer " + key}
		graphQL := func(release int) (int, string) {
			got := s.Call(t, http.MethodPost, "/graphql", fmt.Sprintf(`{"query":"query @asOf(release: %d) {feed {release} stats {toolsTotal}}"}`, release), withKey...)
			return got.StatusCode, blackbox.ReadAll(t, got.Body)
		}
		tags, bodies := map[string]string{}, map[string]string{}
		for _, path := range []string{"/api/v1/tools?as_of=3", "/api/v1/stats?as_of=2026-05-30", "/api/v1/tools?search=agent&as_of=3", "/api/v1/tools?as_of=4", "/api/v1/tools?search=agent&as_of=4"} {
			for _, headers := range [][]string{nil, withKey, withKey} { // the last response is cached
				got := s.Call(t, http.MethodGet, path, "", headers...)
				if tags[path], bodies[path] = got.Header.Get("ETag"), blackbox.ReadAll(t, got.Body); got.StatusCode != 200 {
					t.Fatalf("%s: got %d %s, want 200", path, got.StatusCode, bodies[path])
				}
			}
		}
		if code, body := graphQL(3); code != 200 || !strings.Contains(body, `"release":3`) {
			t.Fatalf("GraphQL: got %d %s, want release 3", code, body)
		}

		start := time.Now()
		r := blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before", "4", "--yes"))
		check.Equal(t, r.Out, "Releases 1 (2026-03-03) to 3 (2026-05-05): history removed (107 rows).\nReleases 4 (2026-06-09) to 8 (2026-11-10) can still be read.\n")
		wait.Until(t, "release 3 is no longer served", func() bool {
			return s.Call(t, http.MethodGet, "/api/v1/tools?as_of=3", "", withKey...).StatusCode == 404
		})
		t.Logf("the server detected the pruning %s after the command started", time.Since(start).Round(time.Millisecond))
		const readableRange = "Available releases: 4 (2026-06-09) to 8 (2026-11-10)."
		for _, path := range []string{"/api/v1/tools?as_of=3", "/api/v1/stats?as_of=2026-05-30", "/api/v1/tools?search=agent&as_of=3", "/api/v1/tools?as_of=1"} {
			for _, headers := range [][]string{nil, withKey, {"If-None-Match", tags[path]}} {
				got := s.Call(t, http.MethodGet, path, "", headers...)
				if body := blackbox.ReadAll(t, got.Body); got.StatusCode != 404 || !strings.Contains(body, readableRange) || got.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s, pruned: got %d %v %s, want 404 with the readable range", path, got.StatusCode, got.Header, body)
				}
			}
		}
		if _, body := graphQL(3); !strings.Contains(body, readableRange) {
			t.Errorf("GraphQL, pruned: got %s, want the readable range", body)
		}
		for _, path := range []string{"/api/v1/tools?as_of=4", "/api/v1/tools?search=agent&as_of=4"} {
			got := s.Call(t, http.MethodGet, path, "", withKey...)
			if body := blackbox.ReadAll(t, got.Body); got.StatusCode != 200 || body != bodies[path] || got.Header.Get("ETag") != tags[path] {
				t.Errorf("%s: got %d %s, want the same response as before", path, got.StatusCode, body)
			}
		}
		if r, want := blackbox.Run(t, blackbox.Command(t, cfg, "export", "--as-of", "3")), (blackbox.Result{Code: 1, Err: "palmares: no such release: 3 (releases 4 to 8 can be read)\n"}); r != want {
			t.Errorf("export: got %+v, want %+v", r, want)
		}
		check.Equal(t, readable(t, cfg), "8 yes\n7 yes\n6 yes\n5 yes\n4 yes\n3 no\n2 no\n1 no\n", "releases")
		examine(t, cfg).want(t, "catalog", "ok", "release 8 (feed date 2026-11-10)")

		// The next import continues the history.
		fourth := blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--as-of", "4")).Out
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.WriteFile(t, "feed.ndjson", []byte(fourth))))
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--as-of", "4")).Out, fourth, "release 4 after an import")
		if got := blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--as-of", "8")).Out; got != string(demo.Catalog()) {
			t.Errorf("release 8 after an import: got %d bytes, want the demo catalog", len(got))
		}
		if r := blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before=9", "--yes")); !strings.HasSuffix(r.Out, "\nRelease 9 (2026-06-09) can still be read.\n") {
			t.Errorf("got %q, want only release 9", r.Out)
		}
		if r, want := blackbox.Run(t, blackbox.Command(t, cfg, "history", "prune", "--before=9", "--yes")), (blackbox.Result{Code: 1, Err: "palmares: nothing was changed: there is no history to prune: only release 9 can be read\n"}); r != want {
			t.Errorf("pruning again: got %+v, want %+v", r, want)
		}
		wait.Until(t, "release 8 is no longer served", func() bool {
			return s.Call(t, http.MethodGet, "/api/v1/tools?as_of=8", "", withKey...).StatusCode == 404
		})
	})
}
