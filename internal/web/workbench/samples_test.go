package workbench

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/core/cache"
)

// What is shown to be tried is of the newest release, looked up once for each;
// and of the demo where that cannot be done.
func TestSamplesAreOfTheRelease(t *testing.T) {
	for path, files := range map[string]fstest.MapFS{MarkdownPath: dressed, ReferencePath: bare} {
		asked, release, failure := 0, 1, error(nil)
		answers := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
		handler := servingSamples(files, "", answers, func(context.Context) (map[string]string, int, error) {
			asked++
			return map[string]string{"/api/v1/tools/{slug}": "/api/v1/tools/of-" + string(rune('0'+release))}, release, failure
		})
		expect := func(want string, lookups int) {
			t.Helper()
			for range 2 {
				if got := get(t, handler, path); got.Code != 200 || !strings.Contains(got.Body.String(), want) {
					t.Errorf("%s: no %s in %d %s", path, want, got.Code, got.Body)
				}
			}
			if asked != lookups {
				t.Errorf("%s: looked up %d times, not %d", path, asked, lookups)
			}
		}
		expect("/api/v1/tools/of-1", 1)
		release = 2
		expect("/api/v1/tools/of-1", 1)
		if err := answers.Renew(release); err != nil { // which looks up anew by itself
			t.Fatal(err)
		}
		expect("/api/v1/tools/of-2", 2)
		failure = errors.New("away")
		expect("/api/v1/tools/of-2", 2) // it is kept
		answers.Publish(3)
		expect("/api/v1/tools/plume", 4)
	}
}
