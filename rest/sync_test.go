package rest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// vectorIndex is what a client stores: documents by slug, and the token.
type vectorIndex struct {
	documents map[string]string
	reasons   map[string]string // of the last deletions
	token     string
}

var nextPage = regexp.MustCompile(`<https://palmares\.example([^>]*)>; rel="next"`)

// read follows a path from page to page. between runs after the first page.
func (x *vectorIndex) read(t *testing.T, handler http.Handler, path string, between func()) (pages int) {
	t.Helper()
	x.reasons, x.token = map[string]string{}, ""
	for ; path != ""; pages++ {
		check.Must(t, x.token, "", "%s: next_sync before the last page", path)
		got := get(handler, path)
		var body struct {
			Data     []map[string]any
			NextSync *string `json:"next_sync"`
		}
		check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), path)
		check.Must(t, got.Code, 200, "%s: %s", path, got.Body)
		for _, item := range body.Data {
			slug := item["slug"].(string)
			if item["deleted"] == true {
				check.True(t, x.documents[slug] != "", "%s: got the deletion of %s, want only documents of the client", path, slug)
				delete(x.documents, slug)
				x.reasons[slug] = item["reason"].(string)
				continue
			}
			document := check.Try(json.Marshal(item)).OK(t)
			check.True(t, x.documents[slug] != string(document), "%s: got unchanged document %s, want only changed ones", path, slug)
			x.documents[slug] = string(document)
		}
		if body.NextSync != nil {
			x.token = *body.NextSync
		}
		path = ""
		if next := nextPage.FindStringSubmatch(got.Header().Get("Link")); next != nil {
			path = next[1]
		}
		if pages == 0 && between != nil {
			between()
		}
	}
	return pages
}

// differ returns which documents two clients do not have in common, and whether
// their tokens differ.
func (x *vectorIndex) differ(other *vectorIndex) (what []string) {
	for _, pair := range [][2]*vectorIndex{{x, other}, {other, x}} {
		for slug, document := range pair[0].documents {
			if pair[1].documents[slug] != document {
				what = append(what, slug)
			}
		}
	}
	if x.token != other.token {
		what = append(what, "next_sync")
	}
	return what
}

func (x *vectorIndex) clone() *vectorIndex {
	return &vectorIndex{documents: maps.Clone(x.documents), token: x.token}
}

// randomReviews returns a feed of a few tools that often change, leave the
// embeddings set, are retired or disappear.
func randomReviews(random *rand.Rand, release int) []byte {
	var records []any
	for i := range 12 {
		slug := fmt.Sprintf("t%02d", i)
		switch random.IntN(10) {
		case 0:
			continue
		case 1:
			records = append(records, &record.Retired{Slug: slug, Name: slug, Category: "code", Reason: "mort", RetiredAt: "2026-01-01", Note: "Fermé."})
			continue
		}
		records = append(records, feedtest.Tool(slug, func(t *record.Tool) {
			t.Tier = record.Tier(1 + random.IntN(2)) // the second is not in the set
			t.Category = []string{"code", "voix"}[random.IntN(2)]
			score := float64(5 + random.IntN(2))
			t.Score = &score
			t.Sections = []record.Section{{Section: "verdict", Text: fmt.Sprint("Avis ", random.IntN(2))}, {Section: "prix", Text: "Juste."}}[:random.IntN(3)]
		}))
	}
	return feedtest.Catalog(fmt.Sprintf("2026-02-%02d", release), records...)
}

// A client that syncs from any earlier release has the same documents as one
// that reads the whole set.
func TestSyncEqualsWholeSet(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		random := rand.New(rand.NewPCG(1, 2))
		var handler http.Handler
		publish := func(release int) {
			feedtest.Publish(t, s, randomReviews(random, release))
			handler = serving(t, s) // with an empty cache
		}
		reasons := map[string]int{}
		clients := map[string][]*vectorIndex{}
		for release := 1; release <= 12; release++ {
			publish(release)
			for _, category := range []string{"", "code", "voix"} {
				path := "/api/embeddings?limit=3"
				if category != "" {
					path += "&category=" + category
				}
				whole := &vectorIndex{documents: map[string]string{}}
				whole.read(t, handler, path, nil)
				for slug, document := range whole.documents {
					check.Equal(t, canonical(t, get(handler, "/api/embeddings/"+slug).Body.String()), document, "release %d, %s", release, slug)
				}
				for from, client := range clients[category] {
					synced := client.clone()
					synced.read(t, handler, path+"&sync="+url.QueryEscape(client.token), nil)
					differ := synced.differ(whole)
					check.True(t, differ == nil, "category %q, release %d from %d: got different documents for %v, want those of the whole set", category, release, from+1, differ)
					for slug, reason := range synced.reasons {
						reasons[reason]++
						check.Equal(t, reason, reasonOf(handler, slug, category), "category %q, release %d from %d: deleted because: %s", category, release, from+1, slug)
					}
				}
				clients[category] = append(clients[category], whole)
			}
		}
		for _, reason := range []string{"retired", "removed", "left_set", "left_filter"} {
			check.True(t, reasons[reason] != 0, "got no deletion because %s, want some: the test is too weak", reason)
		}

		// A release that is published between two pages changes nothing.
		client := clients[""][0].clone()
		want := clients[""][11]
		pages := client.read(t, handler, "/api/embeddings?limit=2&sync="+client.token, func() { publish(13) })
		differ := client.differ(want)
		check.True(t, pages >= 2 && differ == nil, "release between pages: got %d pages with other documents of %v, want several with those of release 12", pages, differ)
		newest := &vectorIndex{documents: map[string]string{}}
		newest.read(t, handler, "/api/embeddings", nil)
		client.read(t, handler, "/api/embeddings?sync="+client.token, nil)
		if differ := client.differ(newest); differ != nil {
			t.Errorf("after the last release: got different documents for %v, want those of the whole set", differ)
		}
	})
}

func canonical(t *testing.T, document string) string {
	t.Helper()
	var value any
	check.OK(t, json.Unmarshal([]byte(document), &value))
	encoded := check.Try(json.Marshal(value)).OK(t)
	return string(encoded)
}

// reasonOf derives from other paths why a document is not in a set.
func reasonOf(handler http.Handler, slug, category string) string {
	if one := get(handler, "/api/embeddings/"+slug); one.Code == 200 {
		if !strings.Contains(one.Body.String(), `"category":"`+category+`"`) {
			return "left_filter"
		}
		return "" // it is in the set
	}
	if get(handler, "/api/v1/tools/"+slug).Code == 200 {
		return "left_set"
	}
	if strings.Contains(get(handler, "/api/v1/cimetiere").Body.String(), `"slug":"`+slug+`"`) {
		return "retired"
	}
	return "removed"
}

func TestSyncTokens(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := serving(t, s)
		publishDay := func(s *store.Store, day int) {
			t.Helper()
			tool := feedtest.Tool("plume", func(t *record.Tool) { t.Tier, t.Price = 1, fmt.Sprintf("%d €/mois", day) })
			check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feedtest.Catalog(fmt.Sprintf("2026-02-%02d", day), tool))), publish.Options{})).OK(t)
		}
		got := get(handler, "/api/embeddings")
		check.Equal(t, got.Body.String(), `{"data":[],"next_sync":null}`, "before the first release: %d %s", got.Code, got.Body)
		got = get(handler, "/api/embeddings?sync="+release.SyncToken{Release: 1}.String())
		check.Equal(t, got.Code, 410, "a token before the first release: %s", got.Body)
		tokenAt := func(path string) string {
			index := &vectorIndex{documents: map[string]string{}}
			index.read(t, handler, path, nil)
			return index.token
		}
		publishDay(s, 1)
		handler = serving(t, s) // with an empty cache
		first, ofCode := tokenAt("/api/embeddings"), tokenAt("/api/embeddings?category=code")
		publishDay(s, 2)
		handler = serving(t, s)
		second := tokenAt("/api/embeddings")

		other := testkit.Open(t, testkit.SQLite(t))
		publishDay(other, 1)
		elsewhere := &vectorIndex{documents: map[string]string{}}
		elsewhere.read(t, serving(t, other), "/api/embeddings", nil)
		publishDay(other, 2)
		publishDay(other, 3)
		future := &vectorIndex{documents: map[string]string{}}
		future.read(t, serving(t, other), "/api/embeddings", nil)

		decoded := check.Try(base64.RawURLEncoding.DecodeString(first)).OK(t)
		decoded[len(decoded)-3]++
		verify := func(query string, status int, wants ...string) {
			t.Helper()
			got := get(handler, "/api/embeddings?"+query)
			missing := slices.IndexFunc(wants, func(want string) bool { return !strings.Contains(got.Body.String(), want) })
			check.True(t, got.Code == status && missing < 0, "%s: got %d %s, want %d with %q", query, got.Code, got.Body, status, wants)
		}
		verify("sync="+first, 200, `"data":[]`) // only a price changed
		verify("sync="+first+"&category=code", 400, "issued for all categories", "category=code")
		verify("sync="+ofCode, 400, "issued for category=code", "all categories")
		verify("sync="+first[:len(first)-4], 400, "complete and unchanged")
		verify("sync="+base64.RawURLEncoding.EncodeToString(decoded), 400, "complete and unchanged")
		verify("sync=AAAA", 400, "complete and unchanged")
		for _, release := range []string{"0", "-1", "-9223372036854775808", "9223372036854775807"} { // with a valid checksum
			text := release + " 1 "
			sum := sha256.Sum256([]byte(text))
			forged := base64.RawURLEncoding.EncodeToString(append(sum[:6], text...))
			got := get(handler, "/api/embeddings?sync="+forged)
			check.True(t, got.Code == 400 || got.Code == 410, "forged token of release %s: got %d %s, want 400 or 410", release, got.Code, got.Body)
		}
		verify("sync="+strings.Repeat("A", 3000), 400, "sync")
		verify("sync="+elsewhere.token, 410, "release 1 of", "without sync")
		verify("sync="+future.token, 410, "release 3, which this catalog does not have", "without sync")
		verify("as_of=1&sync="+second, 400, "release 2", "Read the newest release")
		verify("as_of=1&sync="+first, 200, `"data":[]`, first)
		verify("limit=101", 400, "limit", "100")
		verify("limit=100", 200)
		verify("limit=1", 200)
		verify("limit=0", 400, "limit")
		verify("category=", 400, "category must not be empty")
		verify("format=csv", 200) // this path has no such parameter

		publishDay(s, 3)
		check.Try(publish.Prune(t.Context(), s, 3)).OK(t)
		handler = serving(t, s)
		verify("sync="+first, 410, "release 1, which is no longer available. The oldest available release is 3.", "without sync")
	})
}

// changesPage is a response of /api/v1/changes.
type changesPage struct {
	Data []json.RawMessage
	Next string
}

// readChanges returns a page of changes and the path in its Link header.
func readChanges(t *testing.T, handler http.Handler, target string) (page changesPage, next string) {
	t.Helper()
	got := get(handler, target)
	check.Must(t, got.Code, 200, "%s: %s", target, got.Body)
	check.OK(t, json.Unmarshal(got.Body.Bytes(), &page))
	for _, link := range got.Header()["Link"] {
		if address, rel, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">"); rel == `; rel="next"` {
			u := check.Try(url.Parse(address)).OK(t)
			check.Equal(t, u.Query().Get("after"), page.Next, "%s: after in Link", target)
			next = u.RequestURI()
		}
	}
	check.MustTrue(t, next != "", "%s: got headers %v, want a link to the next page", target, got.Header())
	return page, next
}

// Following the link reads each event once, exactly as webhooks deliver it, and
// ends at a page that can be requested again later.
func TestChangesAreTheJournal(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler := demoOn(t, s)
		for query, selected := range map[string]journal.Query{
			"?limit=7": {},
			"?limit=3&types=price.changed&types=tool.retired,tool.updated": {Types: []string{"price.changed", "tool.retired", "tool.updated"}},
			"?limit=200&category=code":                                     {Categories: []string{"code"}},
			"?slug=plume":                                                  {Slug: "plume"},
			"?limit=200&as_of=3":                                           {UpTo: 3, Earlier: true},
			"?since=2999-01-01":                                            {From: 1_000_000},
			"?types=tool.created&until=2000-01-01":                         {From: 1_000_000},
		} {
			selected.Limit = 10_000
			events := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, selected)).OK(t)
			var want, got []string
			for _, e := range events {
				want = append(want, string(e.JSON()))
			}
			target, last := "/api/v1/changes"+query, ""
			for {
				page, next := readChanges(t, handler, target)
				for _, event := range page.Data {
					got = append(got, string(event))
				}
				if len(page.Data) == 0 {
					last = page.Next
					break
				}
				target = next
			}
			check.Slices(t, got, want, query)
			page, _ := readChanges(t, handler, "/api/v1/changes?after="+last)
			check.True(t, !strings.Contains(query, "limit=7") || len(page.Data) == 0, "%s: got %d events after the last page, want none", query, len(page.Data))
		}
	})
}

// An empty page without after can be resumed: the next release is read from its
// first event.
func TestChangesResumeAfterEmptyPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		publishFeed(t, s, responses, catalogOf("first"))
		page, next := readChanges(t, handler, "/api/v1/changes?types=tool.removed")
		check.Must(t, len(page.Data), 0, "next %q", page.Next)
		check.MustTrue(t, page.Next != "", "got %d events and next %q, want none and a cursor", len(page.Data), page.Next)
		publishFeed(t, s, responses, catalogOf("second"))
		page, _ = readChanges(t, handler, next)
		check.Equal(t, len(page.Data), 3, "events")
		page, _ = readChanges(t, handler, "/api/v1/changes?after=evt_999999999999999999")
		check.Equal(t, len(page.Data), 0)
		check.Equal(t, page.Next, "evt_999999999999999999")
	})
}
