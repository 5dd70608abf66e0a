package journal_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/auth"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const hostile = feedtest.Hostile

func newRetired(slug, note string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: note}
}

func newComparison(slug, title string, published bool) *record.Comparison {
	return &record.Comparison{Slug: slug, Title: title, ToolA: "a", ToolB: "v", Winner: "a", WinnerNote: "Plus net.",
		Published: record.Published(published), UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel/" + slug}
}

// allEvents publishes catalogs whose events have every type, with and without a
// state before and after, and returns the events.
func allEvents(t *testing.T, s *store.Store) []*journal.Event {
	t.Helper()
	verifiability, avis, zero := 6.0, "https://palmares.example/avis/full", 0.0
	full := feedtest.Tool("full", func(t *record.Tool) {
		t.Name, t.Tagline, t.Verifiability, t.AvisURL, t.Tier = hostile, hostile, &verifiability, &avis, 1
	})
	v := feedtest.Tool("v", func(t *record.Tool) {
		t.Category, t.Score = "voix", &zero
		t.PriceHistory = []record.PriceChange{{
			ChangedAt: "2025-01-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "gratuit", PreviousPrice: "0 €/mois",
		}}
	})
	untested := feedtest.Tool("u", func(t *record.Tool) { t.Score = nil })
	extra := func(label string) *record.Category { return &record.Category{Slug: "extra", Label: label} }
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", extra("Extra"), full, feedtest.Tool("a"), v, untested, feedtest.Tool("leaves"), feedtest.Tool("retires"),
		newRetired("old", "Fermé."), newRetired("back", "Fermé."), newRetired("gone", hostile),
		newComparison("shown", "Lequel ?", true), newComparison("hidden", hostile, false), newComparison("drops", "Lequel ?", true)))
	cheaper := feedtest.Tool("a", func(t *record.Tool) { t.Price, t.Pricing, t.UpdatedAt = "0 €/mois", "gratuit", "2026-11-02" })
	rewritten := *full
	rewritten.Sections = []record.Section{{Section: "verdict", Text: hostile}}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", extra(hostile), &rewritten, cheaper, v, untested, newRetired("retires", hostile),
		newRetired("old", "Autre."), feedtest.Tool("back"),
		newComparison("shown", hostile, true), newComparison("hidden", hostile, true), newComparison("drops", "Lequel ?", false)))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", feedtest.Tool("full"), cheaper, v, untested, newRetired("retires", hostile), newRetired("old", "Autre."), feedtest.Tool("back")))
	return check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 1000})).OK(t)
}

func TestEventsMatchTheirSchemas(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	handler := journal.SchemaHandler()
	for _, event := range journal.Events {
		got := serve(handler, http.MethodGet, journal.SchemasPath+event+".json")
		check.Must(t, got.Code, 200, "schema of %s: status", event)
		text := check.Try(jsonschema.UnmarshalJSON(got.Body)).OK(t)
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		address := "https://palmares.example" + journal.SchemasPath + event + ".json"
		check.OK(t, compiler.AddResource(address, text))
		schemas[event] = check.Try(compiler.Compile(address)).OK(t)
	}
	unknown := serve(handler, http.MethodGet, "/schemas/events/tool.painted.json") // the rest is in package jsonschema
	check.Equal(t, unknown.Code, 404)
	check.Contains(t, unknown.Body.String(), "There is no event type with this name. Event types: ")
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		seen, forms := map[string]bool{}, map[string]bool{}
		for _, event := range allEvents(t, s) {
			body := event.JSON()
			value := check.Try(jsonschema.UnmarshalJSON(bytes.NewReader(body))).OK(t, "for %s", string(body))
			err := schemas[event.Type].Validate(value)
			check.True(t, err == nil, "got %v, want a match with the schema of %s:\n%s", err, event.Type, body)
			seen[event.Type] = true
			forms[event.Type+form(event.Before != nil)+form(event.After != nil)] = true
			for _, other := range journal.Events {
				check.True(t, other == event.Type || schemas[other].Validate(value) != nil, "%s: got a match with the schema of %s, want none", body, other)
			}
		}
		for _, event := range journal.Events {
			check.True(t, seen[event], "%s: got no event, want one", event)
		}
		for _, want := range []string{
			"category.created-+", "category.updated++", "category.removed+-", "retired.updated++", "tool.created-+", "tool.created++", "tool.retired-+", "tool.retired++", "tool.removed+-", "comparatif.published-+",
			"comparatif.removed+-", "embeddings.changed-+", "embeddings.changed++", "embeddings.changed+-",
		} {
			check.True(t, forms[want], "%s: got no event, want one", want)
		}
	})
}

func form(exists bool) string {
	if exists {
		return "+"
	}
	return "-"
}

func serve(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Developer})))
	return w
}

// FuzzID checks that an event has only one ID, and that the ID of a batch leads to its first
// event.
func FuzzID(f *testing.F) {
	for _, id := range []string{"evt_1", "evt_01", "evt_-1", "evt_9223372036854775808", "EVT_1", "batch_7_00"} {
		f.Add(id, 7)
	}
	f.Fuzz(func(t *testing.T, id string, number int) {
		if parsed, ok := journal.ParseID(id); ok && journal.ID(parsed) != id || !ok && parsed != 0 {
			t.Errorf("%q: got %d and %t, want the number of this ID alone", id, parsed, ok)
		}
		if parsed, ok := journal.ParseID(journal.ID(number)); ok != (number > 0) || ok && parsed != number {
			t.Errorf("%d: got %d and %t, want the same number", number, parsed, ok)
		}
		batch := journal.BatchID([]int{number, len(id)})
		first, ok := journal.ParseBatchID(batch)
		check.Must(t, ok, true, batch)
		check.Equal(t, first, number, batch)
	})
}

// The journal can be read for more tools than a statement may have parameters.
func TestJournalOfManyTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("z")))
		slugs := []string{"a"}
		for i := range 70_000 {
			slugs = append(slugs, fmt.Sprint("unknown-", i))
		}
		tools := journal.Tools{DB: s.Read, Dialect: s.Dialect(), Slugs: append(slugs, "z"), UpTo: 1}
		numbers, _, err := tools.Events(t.Context(), journal.ToolQuery{Types: journal.ToolEvents, Limit: 5})
		check.OK(t, err)
		check.Equal(t, len(numbers["a"]), 1)
		check.Equal(t, len(numbers["z"]), 1)
		versions := check.Try(tools.Versions(t.Context(), 5, false)).OK(t)
		check.Equal(t, len(versions), 2)
		first := check.Try(tools.FirstReleases(t.Context())).OK(t)
		check.Equal(t, len(first), 2, "first releases %v", first)
		check.Equal(t, first["z"], 1)
		changes := check.Try(tools.ScoreChanges(t.Context())).OK(t)
		check.Equal(t, len(changes), 2, "score changes %v", changes)
	})
}
