package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

// An event shows a record with the fields and the order of the REST API, before
// and after the release, and fields that REST does not have. An unchanged record has
// no event, unless REST shows it differently.
func TestEventsMatchREST(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		score, avis := 6.0, "https://palmares.example/avis/a"
		a, v, b := feedtest.Tool("a"), feedtest.Tool("v"), feedtest.Tool("b")
		old := newRetired("old", "Fermé.")
		duel, other := newComparison("duel", "Lequel ?", true), newComparison("other", "Lequel ?", true)
		other.Winner = "v"
		records := map[string]any{"a": a, "v": v, "b": b, "old": old, "duel": duel, "other": other, "hidden": newComparison("hidden", "Lequel ?", false)}
		var last int
		was, wasRecord := map[string]string{}, map[string]string{}
		for _, step := range []struct {
			name   string
			change func()
		}{
			{"the first import", func() {}},
			{"name", func() { b.Name = "Autre" }},
			{"hostile strings", func() { b.Name, b.Tagline, duel.Title, old.Note = hostile, hostile, hostile, hostile }},
			{"domain", func() { a.Domain = "other.example" }},
			{"category", func() { a.Category = "voix" }},
			{"icp", func() { a.ICP = "vibe-coder" }},
			{"pricing", func() { a.Pricing = "freemium" }},
			{"price", func() { a.Price = "0 €/mois" }},
			{"score", func() { a.Score = &score }},
			{"no score", func() { a.Score = nil }},
			{"verifiability", func() { a.Verifiability = &score }},
			{"canonical_url", func() { a.CanonicalURL += "?x=<&>" }},
			{"avis_url", func() { a.AvisURL = &avis }},
			{"alternatives_url", func() { a.AlternativesURL += "/" }},
			{"updated_at", func() { a.UpdatedAt = "2026-11-02" }},
			{"tier", func() { a.Tier = 2 }},
			{"mainstream", func() { a.Mainstream = true }},
			{"obsolescence", func() { a.Obsolescence = &score }},
			{"sections", func() { a.Sections = nil }},
			{"price_history", func() {
				a.PriceHistory = []record.PriceChange{{ChangedAt: "2025-01-01", Pricing: "payant", Price: "9 €/mois", PreviousPricing: "payant", PreviousPrice: "8 €/mois"}}
			}},
			{"a retired tool's category", func() { old.Category = "voix" }},
			{"its score", func() { old.Score = &score }},
			{"its reason", func() { old.Reason = "acquis" }},
			{"its date", func() { old.RetiredAt = "2026-06-02" }},
			{"its note", func() { old.Note = "Acheté." }},
			{"its name", func() { old.Name = "Vieux" }},
			{"a comparison's title", func() { duel.Title = "Qui donc ?" }},
			{"its winner", func() { duel.Winner = "v" }},
			{"its winner_note", func() { duel.WinnerNote = "Plus beau." }},
			{"its tool", func() { duel.ToolA = "b" }},
			{"its own date", func() { duel.UpdatedAt = "2026-10-02" }},
			{"its URL", func() { duel.CanonicalURL += "/" }},
			{"its winner's name", func() { v.Name = "Nouveau" }},
			{"its winner's name and its own title", func() { v.Name, duel.Title = "Dernier", "Et alors ?" }},
			{"two tools of the same name", func() { b.Name = v.Name }},
			{"a winner of the same name", func() { duel.Winner = "b" }},
			{"the former winner", func() { duel.Winner = "v" }},
			{"another winner, under a new name", func() { duel.Winner, b.Name = "b", "B" }},
			{"hidden, its winner renamed", func() { duel.Published, b.Name = false, "Bé" }},
			{"still hidden, its winner renamed", func() { b.Name = "Bê" }},
			{"shown again", func() { duel.Published = true }},
			{"its winner retired, under a new name", func() {
				records["b"] = &record.Retired{Slug: "b", Name: "Feu B", Category: "voix", Reason: "mort", RetiredAt: "2026-11-03", Note: "Fermé."}
			}},
			{"and back", func() { b.Name, records["b"] = "B vit", b }},
			{"removed with its winner", func() { delete(records, "duel"); delete(records, "b"); a.Name = "Un autre" }},
		} {
			step.change()
			feedtest.Publish(t, s, feedtest.Catalog("2026-11-05", slices.Collect(maps.Values(records))...))
			is, isRecord := shownByREST(t, s), publicRecords(t, s, 0).lines()
			events, err := journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 1000, After: last})
			check.OK(t, err)
			seen := map[string]bool{}
			for _, event := range events {
				last = event.Number
				noun, _, _ := strings.Cut(strings.Replace(event.Type, "retired.", "tool.", 1), ".")
				if noun != "tool" && noun != "comparatif" {
					continue
				}
				key := noun + " " + event.Slug
				check.True(t, !seen[key], "%s: got two events of %s, want one", step.name, key)
				seen[key] = true
				if got := [2]string{restOnly(t, event.Before, was[key]), restOnly(t, event.After, is[key])}; got != [2]string{was[key], is[key]} {
					t.Errorf("%s: %s of %s\ngot  %s\n  to %s\nwant %s\n  to %s, as in REST", step.name, event.Type, key, got[0], got[1], was[key], is[key])
				}
				if strings.HasSuffix(event.Type, ".updated") {
					slices.Sort(event.Fields)
					want := differing(t, string(event.Before), string(event.After))
					check.Slices(t, event.Fields, want, "%s: changed fields of %s", step.name, key)
					check.True(t, len(want) != 0, "%s: changed fields of %s: got %v, want %v", step.name, key, event.Fields, want)
				}
			}
			for key := range merged(was, is) {
				check.Equal(t, seen[key], (was[key] != is[key] || wasRecord[key] != isRecord[key]), "%s: %s", step.name, key)
			}
			was, wasRecord = is, isRecord
		}
	})
}

// shownByREST returns every tool and comparison as the REST API shows it, keyed
// by "tool" or "comparatif" and slug.
func shownByREST(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	silent := slog.New(slog.DiscardHandler)
	executor := graphtest.New(graph.Config{Catalog: s, Log: silent})
	api, err := rest.NewHandler(rest.Config{}, executor, cache.New(1<<20, nil, silent))
	check.OK(t, err)
	shown := map[string]string{}
	list := func(path, noun string) {
		var all struct{ Data []json.RawMessage }
		got := serve(api, http.MethodGet, "/api/v1/"+path)
		check.Must(t, got.Code, 200, "%s: %s", path, got.Body)
		check.OK(t, json.Unmarshal(got.Body.Bytes(), &all), path)
		for _, item := range all.Data {
			var known struct{ Slug string }
			check.OK(t, json.Unmarshal(item, &known))
			shown[noun+" "+known.Slug] = canonical(t, item)
		}
	}
	list("tools?limit=200", "tool")
	for key := range shown {
		_, slug, _ := strings.Cut(key, " ")
		shown[key] = canonical(t, serve(api, http.MethodGet, "/api/v1/tools/"+slug).Body.Bytes())
	}
	list("cimetiere?limit=200", "tool")
	list("comparatifs?limit=200", "comparatif")
	return shown
}

// restOnly returns the members of an event's state that REST has, in the same order.
func restOnly(t *testing.T, state []byte, shown string) string {
	t.Helper()
	if state == nil {
		return ""
	}
	var known map[string]json.RawMessage
	if shown != "" {
		check.OK(t, json.Unmarshal([]byte(shown), &known))
	}
	decoder, members := json.NewDecoder(bytes.NewReader(state)), []string{}
	_, err := decoder.Token()
	check.OK(t, err)
	for decoder.More() {
		name, err := decoder.Token()
		check.OK(t, err)
		var value json.RawMessage
		check.OK(t, decoder.Decode(&value))
		if _, ok := known[name.(string)]; ok {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
	}
	return canonical(t, []byte("{"+strings.Join(members, ",")+"}"))
}

// canonical removes differences in formatting, but not in the order of fields.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	if text == nil {
		return ""
	}
	var out bytes.Buffer
	check.OK(t, json.Compact(&out, text), "for %s", string(text))
	return strings.NewReplacer(`\u001F`, `\u001f`).Replace(out.String())
}

// differing returns the names of the fields that differ, in alphabetical order.
func differing(t *testing.T, before, after string) (names []string) {
	t.Helper()
	var was, is map[string]json.RawMessage
	check.OK(t, json.Unmarshal([]byte(before), &was))
	check.OK(t, json.Unmarshal([]byte(after), &is))
	for name := range merged(was, is) {
		if string(was[name]) != string(is[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
