package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
			u, err := url.Parse(address)
			check.OK(t, err)
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
		} {
			selected.Limit = 10_000
			events, err := journal.Read(t.Context(), s.Read.JournalEntry, selected)
			check.OK(t, err)
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
			if page, _ := readChanges(t, handler, "/api/v1/changes?after="+last); strings.Contains(query, "limit=7") && len(page.Data) > 0 {
				t.Errorf("%s: got %d events after the last page, want none", query, len(page.Data))
			}
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
		if page, _ = readChanges(t, handler, next); len(page.Data) != 3 {
			t.Errorf("got %d events, want the 3 removed tools", len(page.Data))
		}
		if page, _ = readChanges(t, handler, "/api/v1/changes?after=evt_999999999999999999"); len(page.Data) > 0 || page.Next != "evt_999999999999999999" {
			t.Errorf("got %d events and next %s, want none and the given cursor", len(page.Data), page.Next)
		}
	})
}

func TestChangesUntil(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		all := get(handler, "/api/v1/changes?types=tool.created&limit=200").Body.String()
		early := get(handler, "/api/v1/changes?types=tool.created&limit=200&until=2000-01-01").Body.String()
		check.Contains(t, all, `"id":"evt_`)
		check.Lacks(t, early, `"id":"evt_`)
	})
}
