package timetravel_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// smallCatalog returns a feed in which the first tool has a score.
func smallCatalog(date string, score float64, tools ...string) []byte {
	var records []any
	for i, slug := range tools {
		records = append(records, feedtest.Tool(slug, func(t *record.Tool) {
			if i == 0 {
				t.Score, t.Tier = &score, 1
			}
		}))
	}
	return feedtest.Catalog(date, records...)
}

// fourReleases publishes four small releases, the second and third on one day.
func fourReleases(t testing.TB, db *store.Store) []*ent.Release {
	t.Helper()
	feedtest.Publish(t, db, smallCatalog("2026-02-01", 1, "a", "b"))
	feedtest.Publish(t, db, smallCatalog("2026-02-10", 2, "a", "b", "c"))
	feedtest.Publish(t, db, smallCatalog("2026-02-10", 3, "a", "b", "c"))
	feedtest.Publish(t, db, smallCatalog("2026-03-01", 4, "a", "c"))
	releases := check.Try(db.Read.Release.Query().Order(ent.Asc("number")).All(t.Context())).OK(t)
	check.Must(t, len(releases), 4)
	return releases
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	testkit.EachInFull(t, func(t *testing.T, db *store.Store) {
		releases := fourReleases(t, db)
		s := newServer(t, db)
		for range 2 { // executed, then cached
			for _, release := range releases {
				for _, caller := range []auth.Caller{anonymous, developer} {
					visibility := "public"
					if caller.Key != "" {
						visibility = "private"
					}
					for target, original := range map[string]string{
						"/api/v1/stats":            "/api/v1/stats",
						"/api/v1/tools/a":          "/api/v1/tools/a",
						"/api/v1/tools/a/versions": "/api/v1/tools/a/versions",
						"/api/v1/tools?limit=1&page=1&category=code&unknown=1": "/api/v1/tools?limit=1&category=code",
					} {
						got := s.get(caller, with(target, "as_of", release.ID))
						for name, want := range map[string]string{
							"X-Service-Release":    strconv.Itoa(release.ID),
							"X-Service-Updated-At": release.FeedDate,
							"Memento-Datetime":     release.ImportedAt.UTC().Format(http.TimeFormat),
							"Cache-Control":        visibility + ", max-age=31536000, immutable",
							"Content-Location":     "",
							"Vary":                 "Authorization, Accept-Encoding",
						} {
							value := got.Header().Get(name)
							check.True(t, got.Code == 200 && value == want, "%s as of %d: got %d with %s %q, want %q", target, release.ID, got.Code, name, value, want)
						}
						links := strings.Join(got.Header().Values("Link"), ", ")
						check.Contains(t, links, "<"+publicURL+original+`>; rel="original"`, fmt.Sprintf("%s as of %d", target, release.ID))
						checkTag(t, s, caller, with(target, "as_of", release.ID), got.Header())
					}
				}
			}
			for day, number := range map[string]int{"2026-02-01": 1, "2026-02-09": 1, "2026-02-10": 3, "2026-02-28": 3, "2026-03-01": 4, "2099-12-31": 4} {
				target := "/api/v1/tools?sort=name_asc&limit=1&as_of=" + day
				got := s.get(developer, target)
				for name, want := range map[string]string{
					"X-Service-Release": strconv.Itoa(number), "Memento-Datetime": "", "Cache-Control": "s-maxage=3600, stale-while-revalidate=86400",
					"Content-Location": fmt.Sprintf("%s/api/v1/tools?limit=1&sort=name_asc&as_of=%d", publicURL, number),
				} {
					value := got.Header().Get(name)
					check.True(t, got.Code == 200 && value == want, "as of %s: got %d with %s %q, want %q", day, got.Code, name, value, want)
				}
				checkTag(t, s, developer, target, got.Header())
				numbered := strings.TrimPrefix(got.Header().Get("Content-Location"), publicURL)
				check.Equal(t, s.get(developer, numbered).Body.String(), got.Body.String(), numbered)
			}
		}
		embeddings := s.get(developer, "/api/embeddings/a?as_of=2")
		control := embeddings.Header().Get("Cache-Control")
		check.True(t, embeddings.Code == 200 && control == "private, max-age=31536000, immutable", "embeddings: got %d with Cache-Control %s, want a private one", embeddings.Code, control)
		check.Equal(t, s.get(anonymous, "/api/embeddings/a?as_of=2").Code, 401, "embeddings without a key")
	})
}

// checkTag requests a response again with its ETag and expects a 304 with the same
// headers.
func checkTag(t testing.TB, s *server, caller auth.Caller, target string, header http.Header) {
	t.Helper()
	tag := header.Get("Etag")
	again := s.get(caller, target, "If-None-Match", tag)
	check.True(t, tag != "" && again.Code == http.StatusNotModified && again.Body.Len() == 0, "%s: got %d with the tag %q, want 304", target, again.Code, tag)
	for _, name := range []string{"Etag", "Cache-Control", "Content-Location", "Memento-Datetime", "X-Service-Release", "Vary"} {
		check.Equal(t, again.Header().Get(name), header.Get(name), "%s: %s", target, name)
	}
	check.Equal(t, s.get(caller, target, "If-None-Match", `"another"`).Code, 200, "%s: with another tag", target)
}

// foreign are words of libraries and databases, which callers must never see.
var foreign = regexp.MustCompile(`(?i)sql|pq:|ent:|strconv|time\.|parsing|gqlparser|json:|panic|goroutine|runtime|invalid memory|unmarshal|syntax error|relation|column "`)

// TestInvalidDirective checks the errors of @asOf over HTTP.
func TestInvalidDirective(t *testing.T) {
	t.Parallel()
	const one, invalid, input = "@asOf requires exactly one of release and date.", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT"
	const outside = " available. Available releases: 1 (2026-02-01) to 4 (2026-03-01)."
	testkit.EachInFull(t, func(t *testing.T, db *store.Store) {
		fourReleases(t, db)
		s := newServer(t, db)
		for _, c := range []struct{ query, variables, code, message string }{
			{`query @asOf {feed {release}}`, `{}`, input, one},
			{`query @asOf(release: 1, date: "2026-02-01") {feed {release}}`, `{}`, input, one},
			{`query @asOf(release: null) {feed {release}}`, `{}`, input, one},
			{`query @asOf(release: null, date: null) {feed {release}}`, `{}`, input, one},
			{`query ($r: Int) @asOf(release: $r) {feed {release}}`, `{}`, input, one},
			{`query ($r: Int) @asOf(release: $r) {feed {release}}`, `{"r":null}`, input, one},
			{`query ($r: Int, $d: Date) @asOf(release: $r, date: $d) {feed {release}}`, `{"r":1,"d":"2026-02-01"}`, input, one},
			{`query ($r: Int = 1, $d: Date = "2026-02-01") @asOf(release: $r, date: $d) {feed {release}}`, `{}`, input, one},
			{`query @asOf(release: 0) {feed {release}}`, `{}`, input, "@asOf(release:) must be at least 1 (got 0)."},
			{`query @asOf(release: -7) {feed {release}}`, `{}`, input, "@asOf(release:) must be at least 1 (got -7)."},
			{`query ($r: Int!) @asOf(release: $r) {feed {release}}`, `{"r":0}`, input, "must be at least 1"},
			{`query @asOf(release: 5) {feed {release}}`, `{}`, "NOT_FOUND", "Release 5 is not" + outside},
			{`query @asOf(release: 2147483647) {feed {release}}`, `{}`, "NOT_FOUND", "Release 2147483647 is not" + outside},
			{`query @asOf(date: "2026-01-31") {feed {release}}`, `{}`, "NOT_FOUND", "No release dated 2026-01-31 or earlier is" + outside},
			{`query @asOf(release: 1.5) {feed {release}}`, `{}`, invalid, ""},
			{`query @asOf(date: "2026-02-30") {feed {release}}`, `{}`, "", "YYYY-MM-DD"},
			{`query ($d: Date) @asOf(date: $d) {feed {release}}`, `{"d":"2026-02-30"}`, "", "YYYY-MM-DD"},
			{`query @asOf(release: 1) @asOf(release: 2) {feed {release}}`, `{}`, invalid, "asOf"},
			{`query @asOf(number: 1) {feed {release}}`, `{}`, invalid, ""},
			{`query @asOf(release: $r) {feed {release}}`, `{"r":1}`, invalid, ""},
			{`{feed @asOf(release: 1) {release}}`, `{}`, invalid, "asOf"},
			{`subscription @asOf(release: 1) {catalogPublished {release}}`, `{}`, invalid, "asOf"},
		} {
			r, _ := http.NewRequestWithContext(auth.WithCaller(t.Context(), anonymous), http.MethodPost, "/graphql",
				strings.NewReader(fmt.Sprintf(`{"query":%q,"variables":%s}`, c.query, c.variables)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/graphql-response+json")
			got := httptest.NewRecorder()
			s.graphql.ServeHTTP(got, r)
			body := got.Body.String()
			if got.Code != 400 && got.Code != 404 || !strings.Contains(body, `"code":"`+c.code) || !strings.Contains(body, `"message":"`) || !strings.Contains(body, c.message) {
				t.Errorf("%s %s: got %d %s, want %s %s", c.query, c.variables, got.Code, body, c.code, c.message)
			}
			check.True(t, !foreign.MatchString(body) && !strings.Contains(body, `"data"`) && len(body) <= 900, "%s %s: got %s, want only a clear error", c.query, c.variables, body)
		}
		// Introspection reads no release, and needs none to exist.
		got := s.query(t, `query @asOf(release: 1) {__typename feed {release}}`, nil)
		check.True(t, string(got.Data) == `{"__typename":"Query","feed":{"release":1}}`, "got %s %v, want release 1", got.Data, got.Errors)
		// The directive belongs to the operation that is executed.
		both := `query Then @asOf(release: 2) {feed {release}} query Now {feed {release}}`
		for name, want := range map[string]int{"Then": 2, "Now": 4} {
			got := s.executor.Execute(auth.WithCaller(t.Context(), developer), graph.Request{Query: both, OperationName: name})
			check.Equal(t, string(got.Data), fmt.Sprintf(`{"feed":{"release":%d}}`, want), "%s: %v", name, got.Errors)
		}
	})
}

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
