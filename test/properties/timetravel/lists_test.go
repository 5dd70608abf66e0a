package timetravel_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// A tool that leaves the embeddings because of another one did not change itself,
// but earlier releases still have its embeddings.
func TestEmbeddingsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		const limit = 300
		catalog := func(best float64) []byte {
			var records []any
			for i := range limit + 1 {
				records = append(records, feedtest.Tool(fmt.Sprintf("t%03d", i), func(t *record.Tool) {
					score := 9.0
					if t.Tier = 1; i == limit {
						score = best
					}
					t.Score = &score
				}))
			}
			return feedtest.Catalog(fmt.Sprintf("2026-01-%02.0f", best), records...)
		}
		s := newServer(t, db)
		last, first := "t300", "t299" // of equals, the first ones have embeddings
		for i, best := range []float64{8, 10, 7} {
			number := s.publish(t, db, catalog(best))
			for release := range number {
				in, out := first, last
				if release == 1 {
					in, out = last, first
				}
				for _, s := range []*server{s, newServer(t, db)} {
					for slug, want := range map[string]int{in: 200, out: 404} {
						check.Equal(t, s.get(developer, fmt.Sprintf("/api/embeddings/%s?as_of=%d", slug, release+1)).Code, want, "after release %d, %s as of %d", i+1, slug, release+1)
					}
				}
			}
		}
	})
}

// A tool that was removed and added again has all of its versions, however few
// are requested.
func TestVersionsOfARemovedTool(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		for i := range 7 { // a is in releases 1, 3, 5 and 7
			tools := []string{"b", "a"}[:2-i%2]
			feedtest.Publish(t, db, smallCatalog(fmt.Sprintf("2026-01-%02d", i+1), float64(i), tools...))
		}
		s := newServer(t, db)
		for release := 1; release <= 7; release++ {
			for limit := 1; limit <= 5; limit++ {
				var want []string
				for first := release - 1 + release%2; first >= 1 && len(want) < limit; first -= 2 {
					last := fmt.Sprint(first)
					if first == release {
						last = "null"
					}
					want = append(want, fmt.Sprintf(`{"firstRelease":%d,"lastRelease":%s}`, first, last))
				}
				document := fmt.Sprintf(`query @asOf(release: %d) {toolVersions(slug: "a", limit: %d) {versions {firstRelease lastRelease}}}`, release, limit)
				check.Equal(t, result(t, s, document, nil), `{"toolVersions":{"versions":[`+strings.Join(want, ",")+`]}}`, document)
			}
		}
	})
}
