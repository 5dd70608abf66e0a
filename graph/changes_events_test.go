package graph_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Events are the same as those that webhooks deliver, including those of tools, and every
// connection has a cursor to continue from.
func TestDeliveredEvents(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		expect(t, "before the first release", mustExecute(t, e, `{changes {events nextCursor}}`), `{"changes":{"events":[],"nextCursor":null}}`)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a", withPrice("5 €/mois")), feedtest.Tool("c")))
		stored, err := journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 100})
		check.OK(t, err)
		var all, ofA []string
		for _, event := range stored {
			all = append(all, string(event.JSON()))
			if event.Slug == "a" { // newest first below a tool
				ofA = append([]string{string(event.JSON())}, ofA...)
			}
		}
		newest := stored[len(stored)-1].ID()
		type events struct {
			Events     []json.RawMessage
			NextCursor string
		}
		verify := func(what string, got events, want []string, next string) {
			t.Helper()
			var texts []string
			for _, event := range got.Events {
				texts = append(texts, string(event))
			}
			expect(t, what, strings.Join(texts, "\n"), strings.Join(want, "\n"))
			expect(t, what+", next", got.NextCursor, next)
		}
		list := func(e *graph.Executor, arguments string) events {
			return decode[struct{ Changes events }](t, mustExecute(t, e, `{changes(`+arguments+`) {events nextCursor}}`)).Changes
		}
		verify("all", list(e, `first: 200`), all, newest)
		verify("newest first", list(e, `first: 1, order: newest_first`), all[len(all)-1:], newest)
		verify("none", list(e, `slug: "x"`), nil, newest)
		verify("none after a cursor", list(e, `slug: "x", after: "evt_7"`), nil, "evt_7")
		tools := decode[struct {
			Tools struct{ Items []struct{ Changes events } }
		}](t, mustExecute(t, e, `{tools(limit: 2, sort: name_asc) {items {changes {events nextCursor}}}}`)).Tools.Items
		verify("of a tool", tools[0].Changes, ofA, journalID(ofA[len(ofA)-1]))
		earlier := decode[struct{ Changes events }](t, mustExecute(t, e, `query @asOf(release: 1) {changes(slug: "x") {events nextCursor}}`)).Changes
		last := stored[0].ID()
		for _, event := range stored {
			if event.Release == 1 {
				last = event.ID()
			}
		}
		verify("of an earlier release", earlier, nil, last)
	})
}

// journalID returns the ID of an event in JSON.
func journalID(event string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(event, `{"id":"`), `"`)
	return id
}
