package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

var today = time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC)

func tool(slug string, change ...func(*record.Tool)) *record.Tool {
	t := &record.Tool{
		Slug: slug, Name: slug, Domain: slug + ".example", Category: "code", Pricing: "payant", Price: "20 €/mois", UpdatedAt: "2026-11-01",
		Sections: []record.Section{{Section: "verdict", Text: "Bien."}},
	}
	for _, f := range change {
		f(t)
	}
	return t
}

func named(name string) func(*record.Tool)   { return func(t *record.Tool) { t.Name = name } }
func at(domain string) func(*record.Tool)    { return func(t *record.Tool) { t.Domain = domain } }
func updated(date string) func(*record.Tool) { return func(t *record.Tool) { t.UpdatedAt = date } }
func checked(date string) func(*record.Tool) {
	return func(t *record.Tool) { t.Sources = []record.Source{{Field: "price", CheckedAt: date}} }
}
func ends(date string) func(*record.Tool)     { return func(t *record.Tool) { t.EndsAt = &date } }
func scored(score float64) func(*record.Tool) { return func(t *record.Tool) { t.Score = &score } }

// history is a price history with the newest entry first, each ending in a price.
func history(entries ...string) func(*record.Tool) {
	return func(t *record.Tool) {
		for _, e := range entries {
			date, price, _ := strings.Cut(e, " ")
			t.PriceHistory = append(t.PriceHistory, record.PriceChange{ChangedAt: date, Pricing: "payant", Price: price, PreviousPricing: "payant", PreviousPrice: "1 €/mois"})
		}
	}
}

func duel(a, b, winner string) *record.Comparison {
	return &record.Comparison{Slug: "duel", ToolA: a, ToolB: b, Winner: winner, UpdatedAt: "2026-11-01"}
}

// found checks records from line 2 on, in a category of their own each if they are tools.
// It returns the findings as "line path rule".
func found(opts Options, comments map[int][]feed.Comment, records ...record.Record) (lines []string) {
	opts.Today = today
	c := newChecker(opts)
	for i, rec := range records {
		c.record(i+2, rec, comments[i+2])
	}
	c.header(record.Header{UpdatedAt: "2026-11-17"}, comments[1])
	for _, f := range c.finish() {
		lines = append(lines, fmt.Sprint(f.number, " ", f.Path, " ", f.Rule))
	}
	return lines
}

func TestRules(t *testing.T) {
	url := "https://palmares.example/avis"
	reviewed := func(t *record.Tool) { t.AvisURL = &url }
	withoutSections := func(t *record.Tool) { t.Sections = nil }
	retired := &record.Retired{Slug: "ancien", Name: "Écritoire", RetiredAt: "2026-11-18"}
	for name, c := range map[string]struct {
		opts    Options
		records []record.Record
		want    []string
	}{
		"another domain": {records: []record.Record{tool("a"), tool("b", at("a.example.com"))}},
		"same domain": {records: []record.Record{
			tool("a"), tool("b", at("a.example")), tool("c", at("WWW.A.Example")), tool("d", at("https://a.example/x?y")), tool("e", at("a.example.")),
			tool("f", at("café.example")), tool("g", at("xn--caf-dma.example")),
		}, want: []string{"3 domain duplicate-domain", "4 domain duplicate-domain", "5 domain duplicate-domain", "6 domain duplicate-domain", "8 domain duplicate-domain"}},
		"same name": {records: []record.Record{
			tool("a", named("Écho d'Alcôve")), tool("b", named("echo dalcove")), tool("c", named("Bo")), tool("d", named("BO!")), retired, tool("e", named("ecritoire")),
		}, want: []string{"3 name similar-name", "5 name similar-name", "6 retired_at future-date", "7 name similar-name"}},
		"one letter":      {records: []record.Record{tool("a", named("Plume")), tool("b", named("Plumes")), tool("c", named("Blume")), tool("d", named("Pulme"))}, want: []string{"3 name similar-name", "4 name similar-name", "5 name similar-name"}},
		"double letter":   {records: []record.Record{tool("a", named("Colline")), tool("b", named("Coline"))}, want: []string{"3 name similar-name"}},
		"short names":     {records: []record.Record{tool("a", named("Bolt")), tool("b", named("Volt")), tool("c", named("🪶")), tool("d", named("🔥"))}},
		"versions":        {records: []record.Record{tool("a", named("Nova 1")), tool("b", named("Nova 2")), tool("c", named("Nova 21")), tool("d", named("Novas 3"))}},
		"two letters":     {records: []record.Record{tool("a", named("Plume")), tool("b", named("Flumet"))}},
		"empty review":    {records: []record.Record{tool("a", reviewed), tool("b", withoutSections, scored(8)), tool("c", reviewed, withoutSections)}, want: []string{"4 avis_url empty-review"}},
		"price edit":      {records: []record.Record{tool("a", history("2026-11-01 15 €/mois", "2026-10-01 25 €/mois"))}},
		"price agrees":    {records: []record.Record{tool("a", history("2026-11-03 20 €/mois", "2026-11-02 25 €/mois"))}},
		"price differs":   {records: []record.Record{tool("a", history("2026-10-01 20 €/mois", "2026-11-02 25 €/mois"))}, want: []string{"2 price_history[1].price price-history"}},
		"pricing differs": {records: []record.Record{tool("a", history("2026-11-02 20 €/mois"), func(t *record.Tool) { t.Pricing = "freemium" })}, want: []string{"2 price_history[0].price price-history"}},
		"winner": {records: []record.Record{
			duel("a", "b", "a"), tool("a", scored(8)), tool("b", scored(8)), duel("c", "a", "c"), tool("c"), duel("d", "a", "d"), tool("d", scored(7.9)),
		}, want: []string{"7 winner lower-scored-winner"}},
		"category": {records: []record.Record{
			&record.Category{Slug: "vide"}, &record.Category{Slug: "code"}, tool("a"), &record.Category{Slug: "chat"}, tool("b"),
			tool("c", func(t *record.Tool) { t.Category = "chat" }), &record.Retired{Slug: "d", Name: "Feu", Category: "chat"},
		}, want: []string{"2 slug small-category", "5 slug small-category"}},
		"future": {records: []record.Record{
			tool("a", updated("2026-11-18"), history("2026-11-19 20 €/mois")), tool("b", updated("2026-11-17")),
			&record.Comparison{Slug: "c", UpdatedAt: "2027-01-01"},
		}, want: []string{"2 price_history[0].changed_at future-date", "2 updated_at future-date", "4 updated_at future-date"}},
		"ends": {records: []record.Record{
			tool("a", ends("2026-11-01")), tool("b", ends("2026-11-17")), tool("c", ends("2027-01-01")), tool("d", ends("2026-10-31")),
		}, want: []string{"2 ends_at past-end", "5 ends_at end-before-update"}},
		"not stale": {records: []record.Record{tool("a", updated("2001-01-01"))}},
		"stale": {opts: Options{Stale: 365}, records: []record.Record{
			tool("a", updated("2025-11-16")), tool("b", updated("2025-11-17")), &record.Retired{Slug: "c", Name: "Feu", RetiredAt: "2001-01-01"},
			&record.Comparison{Slug: "d", UpdatedAt: "2024-11-17"},
		}, want: []string{"2 updated_at stale", "5 updated_at stale"}},
		"sources": {opts: Options{Stale: 365}, records: []record.Record{
			tool("a", updated("2024-01-01"), checked("2026-11-17")), tool("b", checked("2025-11-16")), tool("c", checked("2026-11-18")),
		}, want: []string{"3 sources[0].checked_at stale", "4 sources[0].checked_at future-date"}},
	} {
		check.Slices(t, found(c.opts, nil, c.records...), c.want, name)
	}
	c := newChecker(Options{Today: today})
	c.header(record.Header{UpdatedAt: "2026-11-18"}, nil)
	got := c.finish()
	check.Must(t, len(got), 1, "header: %+v", got)
	check.Equal(t, got[0].Record, "feed", "header")
	check.Equal(t, got[0].Message, "2026-11-18 is in the future; correct it", "header")
}

// A comment in the file of either record disables a rule about two.
func TestDisable(t *testing.T) {
	first, second := tool("a", named("Plume")), tool("b", named("Plumes"), at("a.example"))
	for text, want := range map[string][]string{
		"":                                       {"3 domain duplicate-domain", "3 name similar-name"},
		"disable similar-name -- a remark":       {"3 domain duplicate-domain", "3 name similar-name"},
		"lint:disable similar-name -- two tools": {"3 domain duplicate-domain"},
		"lint:disable duplicate-domain -- one site": {"3 name similar-name"},
	} {
		for line := range 2 {
			check.Slices(t, found(Options{}, map[int][]feed.Comment{line + 2: {{Line: 3, Text: text}}}, first, second), want, "%q in line %d", text, line+2)
		}
	}
	for text, want := range map[string]string{
		"lint:disable similar-names -- x":  `there is no rule "similar-names"; did you mean similar-name?`,
		"lint:disable zzz -- x":            `there is no rule "zzz"; palmares lint --explain all lists them`,
		"lint:disable similar-name":        "a reason is required; write # lint:disable similar-name -- two products of one maker",
		"lint:disable similar-name -- ":    "a reason is required; write # lint:disable similar-name -- two products of one maker",
		"lint:disable invalid -- x":        "the rule invalid cannot be disabled; correct what it finds",
		"lint:ignore similar-name -- x":    "the comment is not understood; write # lint:disable similar-name -- two products of one maker",
		"lint:disable lint-comment -- why": "the rule lint-comment cannot be disabled; correct what it finds",
	} {
		c := newChecker(Options{Today: today})
		c.record(2, first, []feed.Comment{{Line: 4, Text: text}})
		got := c.finish()
		check.Must(t, len(got), 1, "findings of %q", text)
		check.Equal(t, *got[0], Finding{number: 2, Record: `tool "a"`, Rule: LintComment, Severity: Error, Message: want, comment: 4}, text)
	}
}

// The number of comparisons grows in proportion to the number of tools, even if all
// names are similar.
func TestNamesAreNotComparedPairwise(t *testing.T) {
	for kind, nameOf := range map[string]func(int) string{
		"one letter differs": func(i int) string { return "Outil " + string(rune(0x4e00+i)) },
		"all letters differ": func(i int) string { return strings.Repeat(string(rune(0x4e00+i)), 20) },
		"numbered":           func(i int) string { return fmt.Sprint("Outil numéro ", i) },
		"same":               func(int) string { return "Outil" },
		"long":               func(i int) string { return strings.Repeat("outil ", 20) + string(rune(0x4e00+i)) },
	} {
		c := newChecker(Options{Today: today})
		const tools = 5000
		for i := range tools {
			c.record(i+2, tool(fmt.Sprint("t", i), named(nameOf(i))), nil)
		}
		c.finish()
		check.True(t, c.compared <= 20*maxNeighbors*tools, "%s: got %d comparisons of %d names, want at most %d", kind, c.compared, tools, 20*maxNeighbors*tools)
	}
}

// Every rule can be explained.
func TestExplanations(t *testing.T) {
	for _, rule := range Rules {
		known, _ := FindRule(rule.Name)
		check.True(t, known != nil && rule.Explanation != "" && slices.Contains([]string{Error, Warning}, rule.Severity), "got rule %+v, want a known severity and an explanation", rule)
	}
}

// FuzzDisable checks that a comment disables a rule that can be disabled, or has a problem.
func FuzzDisable(f *testing.F) {
	for _, directive := range []string{"disable price -- checked", "disable prices -- checked", "disable price", "disable  price  --  x", "enable price", "disable lint-comment -- x"} {
		f.Add(directive)
	}
	f.Fuzz(func(t *testing.T, directive string) {
		name, problem := readDisable(directive)
		check.MustTrue(t, (name == "") != (problem == ""), "%q: got rule %q and problem %q, want one of them", directive, name, problem)
		rule, _ := FindRule(name)
		check.True(t, name == "" || rule != nil && !rule.always, "%q: got rule %q, want one that can be disabled", directive, name)
	})
}
