package timetravel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// switching is a catalog whose database can be replaced by another one.
type switching struct{ atomic.Pointer[store.Store] }

func (c *switching) Snapshot(ctx context.Context, read func(*ent.Client, *ent.Release) error) error {
	return c.Load().Snapshot(ctx, read)
}

func (c *switching) Verify(ctx context.Context, release *ent.Release) error {
	return c.Load().Verify(ctx, release)
}

func (c *switching) CurrentRelease(ctx context.Context) (*ent.Release, error) {
	return c.Load().CurrentRelease(ctx)
}

func (c *switching) Watch(ctx context.Context, log *slog.Logger, seen func(*ent.Release) bool) {
	c.Load().Watch(ctx, log, seen)
}

func (c *switching) Client() *ent.Client { return c.Load().Client() }
func (c *switching) Dialect() string     { return c.Load().Dialect() }

// sample returns some responses as of a release.
func sample(t testing.TB, s *server, release int) string {
	t.Helper()
	all := ""
	for _, target := range []string{"/api/v1/tools?limit=200", "/api/v1/stats", "/api/v1/tools?search=outil", "/api/v1/comparatifs", "/api/v1/categories", "/api/v1/cimetiere",
		"/api/v1/pricing?page=2", "/api/v1/tools/t01", "/api/v1/tools/t01/versions", "/api/embeddings/t04", "/api/embeddings/t08"} {
		got := s.get(developer, with(target, "as_of", release))
		if all += fmt.Sprintln(got.Code, got.Body); got.Code == 200 {
			all += fmt.Sprintln(got.Header().Get("X-Service-Release"), got.Header().Get("Memento-Datetime"))
		}
	}
	document := fmt.Sprintf(`query @asOf(release: %d) {feed {release updatedAt} tools(limit: 60) {items %s} releases {nodes {number publishedAt}} changes(first: 20, order: newest_first) {nodes {id after}}}`, release, allOfTool)
	got := s.query(t, document, nil)
	return all + fmt.Sprintln(string(got.Data), got.Errors)
}

// A restored backup has fewer releases, and then others with the same numbers.
// Nothing in memory or in the cache shows the releases that were lost, no matter when
// the server detects the restore.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		t.Parallel()
		before := check.Try(store.Open(t.Context(), cfg)).OK(t)
		check.Try(before.Migrate(t.Context())).OK(t)
		for i := range 2 {
			feedtest.Publish(t, before, randomCatalog(i, 12))
		}
		check.OK(t, before.Close())
		backups := []store.Config{testkit.Copy(t, cfg), testkit.Copy(t, cfg), testkit.Copy(t, cfg)}
		lost := testkit.Open(t, cfg)
		for i := 2; i < 4; i++ {
			feedtest.Publish(t, lost, randomCatalog(i, 12))
		}
		for noticed, backup := range map[int]store.Config{2: backups[0], 4: backups[1], 5: backups[2]} {
			catalog := &switching{}
			catalog.Store(lost)
			s := newServer(t, catalog)
			check.OK(t, s.responses.Renew(4))
			wrong := map[int]string{}
			for range 2 {
				for release := 1; release <= 5; release++ {
					wrong[release] = sample(t, s, release)
				}
			}
			restored := testkit.Open(t, backup)
			next := 2
			for ; next < noticed; next++ {
				feedtest.Publish(t, restored, randomCatalog(next+4, 12))
			}
			catalog.Store(restored)
			if noticed <= 4 { // as the program does
				s.responses.Restart(noticed)
			} else {
				check.OK(t, s.responses.Renew(noticed))
			}
			for {
				fresh := newServer(t, restored)
				check.OK(t, fresh.responses.Renew(next))
				for release := 1; release <= 5; release++ {
					got, want := sample(t, s, release), sample(t, fresh, release)
					if got != want {
						t.Errorf("noticed at %d, release %d of %d: differs %s", noticed, release, next, differsAt(got, want))
					}
					check.True(t, (want == wrong[release]) == (release <= 2), "release %d: got the same as before: %v, want only the first two", release, want == wrong[release])
				}
				if next == 5 {
					break
				}
				next = s.publish(t, restored, randomCatalog(next+4, 12))
			}
		}
	})
}

// A release is not read in place of another one that had its number.
func TestReplacedReleaseIsNotRead(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		releases := fourReleases(t, db)
		check.OK(t, db.Verify(t.Context(), releases[1]))
		lost := *releases[1]
		lost.ImportedAt = lost.ImportedAt.Add(-time.Hour)
		err := db.Verify(t.Context(), &lost)
		check.True(t, errors.Is(err, store.ErrNoRelease), "got %v for a release that was lost, want no such release", err)
	})
}
