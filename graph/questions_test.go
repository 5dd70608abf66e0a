package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func wantData(t *testing.T, e *graph.Executor, query, want string) {
	t.Helper()
	expect(t, query, mustExecute(t, e, query), want)
}

func retiredTool(slug, day string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: day, Note: "Fermé."}
}

func TestLifetimesAndRanks(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		step := func(date string, records ...any) { feedtest.Publish(t, s, feedtest.Catalog(date, records...)) }
		tool := func(slug string, score float64) any { return feedtest.Tool(slug, withScore(score)) }
		early := retiredTool("early", "2026-10-01")
		step("2026-11-01", tool("a", 9), tool("b", 8), tool("c", 7), early)
		step("2026-11-03", tool("a", 9), tool("b", 9), tool("c", 7), tool("d", 9.5), feedtest.Tool("e", withoutScore), early)
		wantData(t, e, `{tools(sort: name_asc) {items {slug addedAt rank {position of previous} all: rank(in: all) {position}}}}`,
			`{"tools":{"items":[{"slug":"a","addedAt":"2026-11-01","rank":{"position":2,"of":4,"previous":1},"all":{"position":2}},`+
				`{"slug":"b","addedAt":"2026-11-01","rank":{"position":2,"of":4,"previous":2},"all":{"position":2}},`+
				`{"slug":"c","addedAt":"2026-11-01","rank":{"position":4,"of":4,"previous":3},"all":{"position":4}},`+
				`{"slug":"d","addedAt":"2026-11-03","rank":{"position":1,"of":4,"previous":null},"all":{"position":1}},`+
				`{"slug":"e","addedAt":"2026-11-03","rank":null,"all":null}]}}`)
		step("2026-11-05", retiredTool("a", "2026-11-04"), tool("b", 9), early)
		step("2026-11-06", retiredTool("a", "2026-11-04"), tool("c", 7), tool("b", 9), early)
		wantData(t, e, `{retiredTools {items {slug addedAt lifetimeDays}} tool(slug: "c") {addedAt rank {previous}}}`,
			`{"retiredTools":{"items":[{"slug":"a","addedAt":"2026-11-01","lifetimeDays":3},{"slug":"early","addedAt":"2026-11-01","lifetimeDays":null}]},`+
				`"tool":{"addedAt":"2026-11-01","rank":{"previous":null}}}`) // c was removed and came back
		wantData(t, e, `query @asOf(release: 2) {tool(slug: "a") {addedAt rank {position previous}}}`,
			`{"tool":{"addedAt":"2026-11-01","rank":{"position":2,"previous":1}}}`)
	})
}

func TestNestedFilters(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		slugs := func(query string) map[string]bool {
			found := map[string]bool{}
			for _, item := range decode[struct{ Tools struct{ Items []slugItem } }](t, mustExecute(t, e, `{tools(limit: 200, filter: `+query+`) {items {slug}}}`)).Tools.Items {
				found[item.Slug] = true
			}
			return found
		}
		all, code, good, found := slugs(`{}`), slugs(`{categories: "code"}`), slugs(`{scoreMin: 8}`), slugs(`{search: "plume"}`)
		either, but, none := slugs(`{anyOf: [{categories: "code"}, {scoreMin: 8}, {search: "plume"}]}`), slugs(`{not: {anyOf: [{categories: "code"}, {not: {scoreMin: 8}}]}}`), slugs(`{anyOf: []}`)
		for slug := range all {
			expect(t, slug+" in either", either[slug], code[slug] || good[slug] || found[slug])
			expect(t, slug+" but not", but[slug], good[slug] && !code[slug])
		}
		expect(t, "none", len(none), 0)
		if len(code) == 0 || len(good) == 0 || len(but) == 0 || len(found) == 0 || len(either) >= len(all) {
			t.Errorf("got %d, %d, %d, %d and %d of %d tools, want some of each", len(code), len(good), len(but), len(found), len(either), len(all))
		}
	})
}

func TestSeveralToolsAtOnce(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		wantData(t, e, `{tools(sort: name_asc, filter: {domains: ["plume.example", "HTTPS://www.Relire-svp.example/prix?x", "nobody.example"]}) {items {slug}}}`,
			`{"tools":{"items":[{"slug":"plume"},{"slug":"relire-svp"}]}}`)
		wantData(t, e, `{comparisons(slugs: ["plume-vs-relire-svp", "unknown"]) {items {slug}} comparisonConnection(domains: "www.plume.example") {nodes {slug}}}`,
			`{"comparisons":{"items":[{"slug":"plume-vs-relire-svp"}]},"comparisonConnection":{"nodes":[{"slug":"plume-vs-ecritoire-cie"},{"slug":"plume-vs-relire-svp"}]}}`)
	})
}

func TestToolsOfCategoriesAreFiltered(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		type category struct {
			Slug  string
			Tools []slugItem
		}
		for _, c := range decode[struct{ Categories []category }](t, mustExecute(t, e,
			`{categories {slug tools(filter: {scoreMin: 7.5}, sort: monthly_price_asc, limit: 3) {slug} toolConnection(filter: {scoreMin: 7.5}, sort: value_desc) {totalCount}}}`)).Categories {
			listed := mustExecute(t, e, `{tools(limit: 3, sort: monthly_price_asc, filter: {scoreMin: 7.5, categories: "`+c.Slug+`"}) {items {slug}}}`)
			expect(t, c.Slug, slugsOf(c.Tools), slugsOf(decode[struct{ Tools struct{ Items []slugItem } }](t, listed).Tools.Items))
		}
	})
}

func TestGroupsAreOrderedAndLimited(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		type group struct {
			Key         string
			Count       int
			MedianScore *float64
		}
		groups := func(arguments string) []group {
			return decode[struct{ ToolGroups []group }](t, mustExecute(t, e, `{toolGroups(by: category, `+arguments+`) {key count medianScore}}`)).ToolGroups
		}
		all, large := groups(`orderBy: median_score_desc`), 0
		for i, g := range all {
			if g.Count >= 5 {
				large++
			}
			if i > 0 && (*g.MedianScore > *all[i-1].MedianScore || *g.MedianScore == *all[i-1].MedianScore && g.Key < all[i-1].Key) {
				t.Errorf("got %v after %v, want the highest first", g, all[i-1])
			}
		}
		lowest := groups(`orderBy: median_score_asc, minCount: 5`)
		expect(t, "large groups", len(lowest), large)
		two := groups(`orderBy: median_score_asc, minCount: 5, limit: 2`)
		expect(t, "two groups", []string{two[0].Key, two[1].Key, fmt.Sprint(len(two))}, []string{lowest[0].Key, lowest[1].Key, "2"})
		wantData(t, e, `{toolGroups(by: pricing, orderBy: avg_monthly_price_desc, limit: 1) {key avgScore}}`, `{"toolGroups":[{"key":"payant","avgScore":7.01}]}`)
		type counted struct{ Count int }
		for _, field := range []string{`retirementGroups(%s)`, `priceChangeCounts(%s)`} {
			var last []counted
			for _, arguments := range []string{`orderBy: count_desc`, `orderBy: count_desc, limit: 1`} {
				found := decode[map[string][]counted](t, mustExecute(t, e, "{groups: "+fmt.Sprintf(field, arguments)+" {count}}"))["groups"]
				if len(found) == 0 || last != nil && (len(found) >= len(last) || found[0] != last[0]) || found[0].Count < found[len(found)-1].Count {
					t.Errorf("%s, %s: got %v after %v, want fewer, the highest first", field, arguments, found, last)
				}
				last = found
			}
			wantData(t, e, "{groups: "+fmt.Sprintf(field, "minCount: 99")+" {count}}", `{"groups":[]}`)
		}
	})
}

// Versions from the oldest on are those from the newest on in reverse.
func TestOrderOfVersions(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		publishRandom(t, s, 5, func(int) {})
		type version struct {
			FirstRelease int
			LastRelease  *int
			Event, Date  string
		}
		type tool struct {
			Slug        string
			All, Oldest []version
		}
		several := 0
		for _, found := range decode[struct{ Tools struct{ Items []tool } }](t, mustExecute(t, e,
			`{tools {items {slug all: versions(limit: 50) {firstRelease lastRelease event date} oldest: versions(limit: 3, order: oldest_first) {firstRelease lastRelease event date}}}}`)).Tools.Items {
			slices.Reverse(found.All)
			text := func(versions []version) string { data, _ := json.Marshal(versions); return string(data) }
			expect(t, found.Slug, text(found.Oldest), text(found.All[:min(3, len(found.All))]))
			if len(found.All) > 3 {
				several++
			}
		}
		check.True(t, several != 0, "got no tool with more than 3 versions, want some")
	})
}

func TestMoversWithPriceIncreases(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	e := newExecutor(s)
	tool := func(slug, price string, score float64) any {
		return feedtest.Tool(slug, func(t *record.Tool) { t.Price = price; withScore(score)(t) })
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tool("a", "10 €/mois", 8), tool("b", "10 €/mois", 8)))
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", tool("a", "12 €/mois", 7), tool("b", "9 €/mois", 6)))
	wantData(t, e, `{movers(metric: score, from: "2026-11-01", direction: down, filter: {priceIncreases: {since: "2026-11-01"}}) {slug change}}`,
		`{"movers":[{"slug":"a","change":-1}]}`)
	wantData(t, e, `{series(metrics: [price_index], every: release) {points {value}}}`, `{"series":[{"points":[{"value":100},{"value":103.92}]}]}`)
}

func TestLanguageOfSearches(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	e := newExecutor(s)
	tool := func(slug, french, english string, score float64) any {
		return feedtest.Tool(slug, func(t *record.Tool) {
			withScore(score)(t)
			t.Name, t.Tagline, t.Translations.En.Tagline, t.Sections = slug, french, english, nil
		})
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tool("a", "Des notes.", "Text.", 9), tool("b", "Du texte.", "Notes.", 8),
		tool("c", "Encore des notes.", "", 7), tool("notes", "Autre.", "Other.", 6)))
	for arguments, want := range map[string]string{
		``: "notes a b c", `language: fr`: "notes a c b", `language: en`: "notes b a c", `language: en, sort: score_asc`: "notes c b a",
	} {
		items := decode[struct{ Tools struct{ Items []slugItem } }](t, mustExecute(t, e, `{tools(filter: {search: "notes"}`+comma(arguments)+`) {items {slug}}}`)).Tools.Items
		expect(t, arguments, strings.Join(slugsOf(items), " "), want)
	}
	first := decode[connection](t, mustExecute(t, e, `{toolConnection(filter: {search: "notes"}, language: en, first: 2) `+connectionFields+`}`)).ToolConnection
	rest := `{toolConnection(filter: {search: "notes"}, language: %s, after: "` + first.PageInfo.EndCursor + `") {nodes {slug}}}`
	wantData(t, e, fmt.Sprintf(rest, "en"), `{"toolConnection":{"nodes":[{"slug":"a"},{"slug":"c"}]}}`)
	wantRejected(t, execute(t, e, "", fmt.Sprintf(rest, "fr")), "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order.")
}

func comma(arguments string) string {
	if arguments == "" {
		return ""
	}
	return ", " + arguments
}

// The changes of groups are the differences between the groups of two releases.
func TestChangesOfGroups(t *testing.T) {
	fields := map[string][]string{
		"toolGroups": {"avgScore", "avgMonthlyPrice"}, "comparisonGroups": {"winRate"}, "retirementGroups": nil, "priceChangeCounts": nil,
	}
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.PublishDemo(t, s)
		e := newExecutor(s)
		groups := func(asOf, field, selected string) []map[string]any {
			return decode[map[string][]map[string]any](t, mustExecute(t, e, "query "+asOf+" {groups: "+field+" {"+selected+"}}"))["groups"]
		}
		changed := 0
		for field, key := range map[string]string{
			"toolGroups(by: category, thenBy: pricing, orderBy: count_desc, limit: 20, filter: {not: {tiers: [3]}, priceIncreases: {min: 1}})": "key thenKey",
			"toolGroups(by: billing_period)":                        "key",
			`comparisonGroups(by: tool, sort: count_desc)`:          "key",
			`comparisonGroups(by: month, category: "code")`:         "key",
			"retirementGroups(by: [category, reason])":              "category reason",
			"retirementGroups(every: quarter)":                      "period reason",
			"priceChangeCounts(includeEmpty: true)":                 "month category",
			"priceChangeCounts(direction: up, minCount: 1)":         "month category",
			`priceChangeCounts(filter: {categories: ["code"]})`:     "month category",
			`retirementGroups(by: [category], orderBy: count_desc)`: "category",
		} {
			name, _, _ := strings.Cut(field, "(")
			own := strings.Join(append([]string{"count"}, fields[name]...), " ")
			then := map[string]map[string]any{}
			id := func(g map[string]any) (id string) {
				for name := range strings.FieldsSeq(key) {
					id += fmt.Sprint(g[name], " ")
				}
				return id
			}
			everything := strings.NewReplacer("limit: 20", "limit: 1000", "minCount: 1", "minCount: 0").Replace(field)
			for _, g := range groups(`@asOf(date: "2026-06-10")`, everything, key+" "+own) {
				then[id(g)] = g
			}
			for _, g := range groups("", field, key+" "+own+` change(from: "2026-06-10") {release `+own+`}`) {
				change, before := g["change"].(map[string]any), then[id(g)]
				expect(t, field, change["release"], any(4.0))
				for name := range strings.FieldsSeq(own) {
					now, _ := g[name].(float64)
					was, had := before[name].(float64)
					difference, ok := change[name].(float64)
					if name == "count" || ok {
						expect(t, field+" "+name, fmt.Sprintf("%.4f", difference), fmt.Sprintf("%.4f", now-was))
					} else if had && g[name] != nil {
						t.Errorf("%s: got no change of %s, want %v", field, name, now-was)
					}
					if difference != 0 {
						changed++
					}
				}
			}
		}
		check.True(t, changed >= 20, "got %d differences, want at least 20", changed)
		wantData(t, e, `{toolGroups(by: pricing, limit: 1) {change(from: "2026-11-10") {count}}}`, `{"toolGroups":[{"change":null}]}`)
		wantData(t, e, `{toolGroups(by: pricing, limit: 1) {change(from: "2000-01-01") {release}}}`, `{"toolGroups":[{"change":{"release":1}}]}`)
		wantData(t, e, `query @asOf(release: 4) {toolGroups(by: pricing, limit: 1) {change(from: "2026-05-31") {release}}}`, `{"toolGroups":[{"change":{"release":3}}]}`)
		wantRejected(t, execute(t, e, "", `{toolGroups(by: pricing, filter: {search: "a"}) {change(from: "2026-06-10") {count}}}`, nil),
			"BAD_USER_INPUT", "filter.search is not supported here. Search a release with @asOf instead.")
	})
}

// A category is the former one of another if a release moved tools from the one, which it
// removed, to the other, which it added.
func TestFormerSlugs(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		step := func(date string, categories ...string) {
			var records []any
			for _, slug := range categories {
				records = append(records, &record.Category{Slug: slug, Label: slug})
			}
			for i, slug := range categories {
				records = append(records, feedtest.Tool(fmt.Sprint("t", i), func(t *record.Tool) { t.Category = slug }))
			}
			feedtest.Publish(t, s, feedtest.Of(date, records...))
		}
		const query = `{categories {slug formerSlugs}}`
		step("2026-01-01", "text", "voice")
		wantData(t, e, query, `{"categories":[{"slug":"text","formerSlugs":[]},{"slug":"voice","formerSlugs":[]}]}`)
		step("2026-02-01", "writing", "voice")          // text is renamed
		step("2026-03-01", "writing", "voice", "other") // a new one
		step("2026-04-01", "other", "voice")            // writing is removed, and its tool moves to a category that exists
		step("2026-05-01", "text", "sound")             // other and voice are renamed
		step("2026-06-01", "prose", "sound")
		wantData(t, e, query, `{"categories":[{"slug":"prose","formerSlugs":["text","other"]},{"slug":"sound","formerSlugs":["voice"]}]}`)
		wantData(t, e, `query @asOf(release: 2) `+query, `{"categories":[{"slug":"voice","formerSlugs":[]},{"slug":"writing","formerSlugs":["text"]}]}`)
	})
}

func TestAnnouncedEnds(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		ends := func(slug, date string) any { return feedtest.Tool(slug, func(t *record.Tool) { t.EndsAt = &date }) }
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b"), ends("c", "2027-03-31")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a"), ends("b", "2026-12-31"), ends("c", "2027-03-31")))
		for filter, want := range map[string]string{
			`hasEnd: true`: "b c", `hasEnd: false`: "a", `endsBefore: "2027-03-31"`: "b", `endsBefore: "2027-04-01"`: "b c", `not: {endsBefore: "2027-03-31"}`: "a c",
		} {
			var found []string
			for _, item := range decode[struct{ Tools struct{ Items []slugItem } }](t, mustExecute(t, e, `{tools(sort: name_asc, filter: {`+filter+`}) {items {slug}}}`)).Tools.Items {
				found = append(found, item.Slug)
			}
			expect(t, filter, strings.Join(found, " "), want)
		}
		wantData(t, e, `{tools(sort: name_asc) {items {endsAt}} changes(types: [tool_updated]) {nodes {slug fields}}}`,
			`{"tools":{"items":[{"endsAt":null},{"endsAt":"2026-12-31"},{"endsAt":"2027-03-31"}]},"changes":{"nodes":[{"slug":"b","fields":["ends_at"]}]}}`)
	})
}

// Texts are in French unless another language is selected and has a translation, and
// tools have their sources. Earlier releases keep theirs.
func TestTranslationsAndSources(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		category, duel := &record.Category{Slug: "code", Label: "Code source"}, &record.Comparison{
			Slug: "duel", Title: "A ou B ?", ToolA: "a", ToolB: "b", Winner: "a", WinnerNote: "Plus net.",
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/duel",
		}
		tool := feedtest.Tool("a")
		catalog := func(date string) []byte { return feedtest.Of(date, category, tool, feedtest.Tool("b"), duel) }
		feedtest.Publish(t, s, catalog("2026-11-01"))
		category.Translations.En.Label, duel.Translations.En.Title = "Source code", `"A" or <B>?`
		tool.Translations.En.Tagline = "A tool.\n"
		tool.Sources = []record.Source{
			{Field: "price", URL: "https://a.example/?x=<1>&y", CheckedAt: "2026-11-02"}, {Field: "score", URL: "https://b.example/", CheckedAt: "2026-10-02"},
		}
		feedtest.Publish(t, s, catalog("2026-11-02"))
		duel.Translations.En.Title, duel.Translations.En.WinnerNote = "", "Sharper."
		tool.Translations.En.Tagline, tool.Sources = "", tool.Sources[:1]
		feedtest.Publish(t, s, catalog("2026-11-03"))

		e := newExecutor(s)
		for query, want := range map[string]string{
			`query %s {tool(slug: "a") {tagline fr: tagline(language: fr) en: tagline(language: en)}}`: `1 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"Un outil."}}
				2 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"A tool.\n"}}
				3 {"tool":{"tagline":"Un outil.","fr":"Un outil.","en":"Un outil."}}`,
			`query %s {tools(sort: name_asc) {items {tagline(language: en) sources {field url checkedAt}}}}`: `1 {"tools":{"items":[{"tagline":"Un outil.","sources":[]},{"tagline":"Un outil.","sources":[]}]}}
				2 {"tools":{"items":[{"tagline":"A tool.\n","sources":[{"field":"price","url":"https://a.example/?x=<1>&y","checkedAt":"2026-11-02"},{"field":"score","url":"https://b.example/","checkedAt":"2026-10-02"}]},{"tagline":"Un outil.","sources":[]}]}}
				3 {"tools":{"items":[{"tagline":"Un outil.","sources":[{"field":"price","url":"https://a.example/?x=<1>&y","checkedAt":"2026-11-02"}]},{"tagline":"Un outil.","sources":[]}]}}`,
			`query %s {categories {label en: label(language: en)} tool(slug: "b") {category {label(language: en)}}}`: `1 {"categories":[{"label":"Code source","en":"Code source"}],"tool":{"category":{"label":"Code source"}}}
				2 {"categories":[{"label":"Code source","en":"Source code"}],"tool":{"category":{"label":"Source code"}}}
				3 {"categories":[{"label":"Code source","en":"Source code"}],"tool":{"category":{"label":"Source code"}}}`,
			`query %s {comparison(slug: "duel") {title winnerNote en: title(language: en) note: winnerNote(language: en)}}`: `1 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"A ou B ?","note":"Plus net."}}
				2 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"\"A\" or <B>?","note":"Plus net."}}
				3 {"comparison":{"title":"A ou B ?","winnerNote":"Plus net.","en":"A ou B ?","note":"Sharper."}}`,
		} {
			for line := range strings.SplitSeq(want, "\n\t") {
				release, want, _ := strings.Cut(strings.TrimSpace(line), " ")
				asOf := "@asOf(release: " + release + ")"
				expect(t, asOf+query, mustExecute(t, e, strings.Replace(query, "%s", asOf, 1)), want)
				if release == "3" {
					expect(t, query, mustExecute(t, e, strings.Replace(query, "%s", "", 1)), want)
				}
			}
		}

		const byVariable = `query($language: Language! = en) @asOf(release: 2) {tool(slug: "a") {tagline(language: $language)}}`
		expect(t, "default of a variable", mustExecute(t, e, byVariable), `{"tool":{"tagline":"A tool.\n"}}`)
		expect(t, "variable", mustExecute(t, e, byVariable, map[string]any{"language": "fr"}), `{"tool":{"tagline":"Un outil."}}`)
		const optional = `query($language: Language) @asOf(release: 2) {tool(slug: "a") {tagline(language: $language)}}`
		expect(t, "no variable", mustExecute(t, e, optional), `{"tool":{"tagline":"Un outil."}}`)
		for _, query := range []string{optional, byVariable} {
			for _, language := range []any{nil, "de", "EN", 1} {
				got := execute(t, e, auth.Developer, query, map[string]any{"language": language})
				check.True(t, len(got.Errors) != 0, "%s with %v: got %s, want an error", query, language, got.Data)
			}
		}
	})
}

func checkResponses(t *testing.T, e *graph.Executor, responses map[string]string) {
	t.Helper()
	for query, want := range responses {
		check.Equal(t, mustExecute(t, e, query), want, query)
	}
}

func newDuel(a, b, winner, day string) *record.Comparison {
	return &record.Comparison{Slug: a + "-" + b, Title: a + b, ToolA: a, ToolB: b, Winner: winner, WinnerNote: "Plus net.", Published: true,
		UpdatedAt: day, CanonicalURL: "https://palmares.example/duel/" + a + b}
}

func newRetired(slug, reason, day string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Ancien " + slug, Category: "voix", Reason: reason, RetiredAt: day, Note: "Fermé."}
}

func newTool(slug, price string, score float64, changes ...record.PriceChange) *record.Tool {
	return feedtest.Tool(slug, func(t *record.Tool) { t.Price, t.Score, t.PriceHistory = price, &score, changes })
}

func newPriceChange(day, before, after string) record.PriceChange {
	return record.PriceChange{ChangedAt: day, Pricing: "payant", PreviousPricing: "payant", Price: after, PreviousPrice: before}
}

// Periods have their first and last days. With includeEmpty, those in which nothing
// happened are in the response, up to the date of the release.
func TestPeriodsAreComplete(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10",
			newTool("a", "20 €/mois", 8, newPriceChange("2026-02-11", "10 €/mois", "20 €/mois")), newTool("b", "5 €/mois", 7), newRetired("x", "mort", "2025-12-30"), newRetired("y", "acquis", "2026-02-15"),
			newDuel("a", "b", "a", "2026-01-31"), newDuel("b", "x", "b", "2026-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{retirementGroups(every: week) {period start end count}}": `{"retirementGroups":[{"period":"2026-W01","start":"2025-12-29","end":"2026-01-04","count":1},{"period":"2026-W07","start":"2026-02-09","end":"2026-02-15","count":1}]}`,
			"{retirementGroups(by: [], every: quarter, includeEmpty: true) {period start end count}}": `{"retirementGroups":[{"period":"2025-Q4","start":"2025-10-01","end":"2025-12-31","count":1},` +
				`{"period":"2026-Q1","start":"2026-01-01","end":"2026-03-31","count":1},{"period":"2026-Q2","start":"2026-04-01","end":"2026-06-30","count":0}]}`,
			`{retirementGroups(every: month, retiredSince: "2026-02-01", retiredBefore: "2026-04-01", includeEmpty: true) {period reason count}}`: `{"retirementGroups":[` +
				`{"period":"2026-02","reason":"acquis","count":1},{"period":"2026-03","reason":"acquis","count":0}]}`,
			"{retirementGroups {period start end}}":                                                                                  `{"retirementGroups":[{"period":null,"start":null,"end":null},{"period":null,"start":null,"end":null}]}`,
			"{priceChangeCounts {month start end count}}":                                                                            `{"priceChangeCounts":[{"month":"2026-02","start":"2026-02-01","end":"2026-02-28","count":1}]}`,
			"{priceChangeCounts(includeEmpty: true) {month end count}}":                                                              `{"priceChangeCounts":[{"month":"2026-02","end":"2026-02-28","count":1},{"month":"2026-03","end":"2026-03-31","count":0},{"month":"2026-04","end":"2026-04-30","count":0}]}`,
			"{comparisonGroups(by: month) {key start end count}}":                                                                    `{"comparisonGroups":[{"key":"2026-01","start":"2026-01-01","end":"2026-01-31","count":1},{"key":"2026-03","start":"2026-03-01","end":"2026-03-31","count":1}]}`,
			"{comparisonGroups(by: category) {start end}}":                                                                           `{"comparisonGroups":[{"start":null,"end":null},{"start":null,"end":null}]}`,
			"{series(metrics: [count]) {points {period start end}}}":                                                                 `{"series":[{"points":[{"period":"2026-04","start":"2026-04-01","end":"2026-04-30"}]}]}`,
			"{series(metrics: [count], every: release) {points {end}}}":                                                              `{"series":[{"points":[{"end":"2026-04-10"}]}]}`,
			"{comparisonGroups(by: month, includeEmpty: true, page: 2, limit: 2) {key count wins winRate}}":                          `{"comparisonGroups":[{"key":"2026-03","count":1,"wins":null,"winRate":null},{"key":"2026-04","count":0,"wins":null,"winRate":null}]}`,
			`{comparisonGroups(by: month, includeEmpty: true, updatedSince: "2026-02-01", updatedBefore: "2026-03-01") {key count}}`: `{"comparisonGroups":[{"key":"2026-02","count":0}]}`,
		})
	})
}

// The first import adds no tools to the catalog, unless it is asked for.
func TestAdditionsOfFirstImport(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-10", feedtest.Tool("a"), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-20", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-02-20", feedtest.Tool("a"), feedtest.Tool("c"), feedtest.Tool("d")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-03-20", feedtest.Tool("a"), feedtest.Tool("b")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{series(metrics: [additions]) {points {value}}}":                           `{"series":[{"points":[{"value":1},{"value":1},{"value":1}]}]}`,
			"{series(metrics: [additions], includeFirstImport: true) {points {value}}}": `{"series":[{"points":[{"value":3},{"value":1},{"value":1}]}]}`,
		})
	})
}

// Groups of comparisons are read by page, with their tools.
func TestComparisonGroupsByPage(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10", newTool("a", "20 €/mois", 8), newTool("b", "5 €/mois", 7), newTool("c", "5 €/mois", 7), newRetired("x", "mort", "2025-12-30"),
			newDuel("a", "b", "a", "2026-01-31"), newDuel("b", "x", "b", "2026-03-01"), newDuel("c", "b", "c", "2026-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{comparisonGroups(by: tool, limit: 2) {key count}}":                                 `{"comparisonGroups":[{"key":"a","count":1},{"key":"b","count":3}]}`,
			"{comparisonGroups(by: tool, limit: 2, page: 2) {key count}}":                        `{"comparisonGroups":[{"key":"c","count":1},{"key":"x","count":1}]}`,
			"{comparisonGroups(by: tool, limit: 2, page: 3) {key count}}":                        `{"comparisonGroups":[]}`,
			"{comparisonGroups(by: tool, minCount: 2) {key count}}":                              `{"comparisonGroups":[{"key":"b","count":3}]}`,
			"{comparisonGroups(by: tool, sort: win_rate_desc, limit: 1, page: 3) {key winRate}}": `{"comparisonGroups":[{"key":"b","winRate":0.3333}]}`,
			"{comparisonGroups(by: category) {key tool {name}}}":                                 `{"comparisonGroups":[{"key":"code","tool":null},{"key":"voix","tool":null}]}`,
			"{comparisonGroups(by: tool, limit: 1, page: 4) {tool {__typename name slug}}}":      `{"comparisonGroups":[{"tool":{"__typename":"RetiredTool","name":"Ancien x","slug":"x"}}]}`,
			"{comparisonGroups(by: tool, limit: 1) {tool {name ... on Tool {canonicalUrl}}}}":    `{"comparisonGroups":[{"tool":{"name":"Outil a","canonicalUrl":"https://palmares.example/a"}}]}`,
			`{comparisonGroups(by: tool, winner: "b") {key tool {id category {label}} count}}`:   `{"comparisonGroups":[{"key":"b","tool":{"id":"tool/b","category":{"label":"Code"}},"count":1},{"key":"x","tool":{"id":"tool/x","category":{"label":"Voix"}},"count":1}]}`,
		})
	})
}

// Tools can be filtered and grouped by how they are billed, and filtered by the increases
// of their prices.
func TestFiltersByPrice(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		free := newTool("d", "0 €/heure", 6)
		gratis := feedtest.Tool("e", func(t *record.Tool) { t.Price, t.Pricing = "3 €/image", "gratuit" })
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10",
			newTool("a", "120 €/an", 8, newPriceChange("2026-02-11", "10 €/mois", "130 €/an"), newPriceChange("2025-02-11", "9 €/mois", "10 €/mois"), newPriceChange("2026-03-11", "130 €/an", "120 €/an")),
			newTool("b", "12 €/mois", 7, newPriceChange("2025-12-01", "10 €/mois", "12 €/mois")), newTool("c", "1 €/heure", 7, newPriceChange("2026-01-01", "0.5 €/heure", "1 €/heure")), free, gratis))
		e := newExecutor(s)
		for filter, want := range map[string]string{
			"monthlyCostMax: 10": "a e d", "monthlyCostMax: 0": "e d", "monthlyCostMax: 12": "a e b d", "monthlyPriceMax: 10": "a",
			"billingPeriods: [year, hour]": "a c d", "billingPeriods: [use]": "e", "billingPeriods: []": "",
			"priceIncreases: {}": "a b c", "priceIncreases: {min: 2}": "a", `priceIncreases: {since: "2026-01-01"}`: "a c", `priceIncreases: {min: 2, since: "2026-01-01"}`: "",
		} {
			checkSlugsOf(t, e, "tools(filter: {"+filter+"})", want)
		}
		checkResponses(t, e, map[string]string{
			"{toolGroups(by: billing_period) {key count avgMonthlyPrice}}":                             `{"toolGroups":[{"key":"hour","count":2,"avgMonthlyPrice":null},{"key":"month","count":1,"avgMonthlyPrice":12},{"key":"use","count":1,"avgMonthlyPrice":null},{"key":"year","count":1,"avgMonthlyPrice":10}]}`,
			"{toolGroups(by: pricing, thenBy: billing_period, filter: {scoreMin: 7.2}) {key thenKey}}": `{"toolGroups":[{"key":"gratuit","thenKey":"use"},{"key":"payant","thenKey":"year"}]}`,
			"{series(metrics: [count], by: billing_period) {key points {value}}}":                      `{"series":[{"key":"hour","points":[{"value":2}]},{"key":"month","points":[{"value":1}]},{"key":"use","points":[{"value":1}]},{"key":"year","points":[{"value":1}]}]}`,
			"{priceChangeCounts(filter: {priceIncreases: {min: 2}}) {month}}":                          `{"priceChangeCounts":[{"month":"2025-02"},{"month":"2026-02"},{"month":"2026-03"}]}`,
		})
	})
}

// Changes are compared exactly: 0.7 − 0.5 and 0.3 − 0.1 are the same, although not as
// floating-point numbers.
func TestMoversAreExact(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-01", newTool("a", "16 €/mois", 0.1), newTool("b", "2 €/mois", 0.7), newTool("c", "2 €/mois", 8), newTool("d", "2 €/mois", 5)))
		feedtest.Publish(t, s, feedtest.Catalog("2026-02-01", newTool("a", "9,50 €/mois", 0.3), newTool("b", "2 €/mois", 0.5), newTool("c", "2 €/mois", 8.1), newTool("d", "2,50 €/mois", 2)))
		checkResponses(t, newExecutor(s), map[string]string{
			`{movers(metric: score, from: "2026-01-01") {slug change}}`:                          `{"movers":[{"slug":"d","change":-3},{"slug":"a","change":0.2},{"slug":"b","change":-0.2},{"slug":"c","change":0.1}]}`,
			`{movers(metric: score, from: "2026-01-01", minChange: 0.2) {slug}}`:                 `{"movers":[{"slug":"d"},{"slug":"a"},{"slug":"b"}]}`,
			`{movers(metric: score, from: "2026-01-01", minChange: 0.2, direction: up) {slug}}`:  `{"movers":[{"slug":"a"}]}`,
			`{movers(metric: price, from: "2026-01-01", minChange: 0.51) {slug change percent}}`: `{"movers":[{"slug":"a","change":-6.5,"percent":-40.63}]}`, // −40.625
			`{movers(metric: price, from: "2026-01-01", minChange: 6.51) {slug}}`:                `{"movers":[]}`,
		})
	})
}

// Groups and series have percentiles, and averages of all ratings.
func TestStatisticsOfGroupsAndSeries(t *testing.T) {
	rated := func(slug, price string, score float64, verifiability, obsolescence *float64, day string) *record.Tool {
		t := newTool(slug, price, score)
		t.Verifiability, t.Obsolescence, t.UpdatedAt = verifiability, obsolescence, day
		return t
	}
	number := func(n float64) *float64 { return &n }
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-03-01", rated("a", "1 €/mois", 2, number(3), nil, "2026-02-28"), rated("b", "2 €/mois", 4, number(4.25), nil, "2026-02-27"),
			rated("c", "3 €/mois", 5.5, nil, nil, "2026-02-20"), rated("d", "10 €/mois", 9, nil, nil, "2025-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{toolGroups(by: tier) {p25Score medianScore p75Score p90Score p25MonthlyPrice p75MonthlyPrice p90MonthlyPrice}}": `{"toolGroups":[{"p25Score":3.5,"medianScore":4.75,"p75Score":6.38,"p90Score":7.95,"p25MonthlyPrice":1.75,"p75MonthlyPrice":4.75,"p90MonthlyPrice":7.9}]}`,
			"{toolGroups(by: tier) {avgVerifiability avgObsolescence avgDaysSinceUpdate medianDaysSinceUpdate}}":              `{"toolGroups":[{"avgVerifiability":3.63,"avgObsolescence":null,"avgDaysSinceUpdate":94.25,"medianDaysSinceUpdate":5.5}]}`,
			"{series(metrics: [p25_score, p75_score, p90_score, p25_monthly_price, p75_monthly_price, p90_monthly_price]) {points {value}}}": `{"series":[{"points":[{"value":3.5}]},{"points":[{"value":6.38}]},{"points":[{"value":7.95}]},` +
				`{"points":[{"value":1.75}]},{"points":[{"value":4.75}]},{"points":[{"value":7.9}]}]}`,
			"{series(metrics: [mean_verifiability, mean_obsolescence, mean_days_since_update, median_days_since_update]) {metric points {value}}}": `{"series":[{"metric":"mean_verifiability","points":[{"value":3.63}]},` +
				`{"metric":"mean_obsolescence","points":[{"value":null}]},{"metric":"mean_days_since_update","points":[{"value":94.25}]},{"metric":"median_days_since_update","points":[{"value":5.5}]}]}`,
		})
	})
}

func TestAlternatives(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		untested := feedtest.Tool("u", func(t *record.Tool) { t.Score, t.Price = nil, "20 €/mois" })
		elsewhere := feedtest.Tool("v", func(t *record.Tool) { t.Category = "voix" })
		retired := &record.Retired{Slug: "x", Name: "X", Category: "code", Reason: "mort", RetiredAt: "2026-01-01", Note: "Fermé.", Score: new(6.9)}
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10", newTool("a", "20 €/mois", 8), newTool("b", "20 €/mois", 7), newTool("c", "10 €/mois", 8), newTool("d", "240 €/an", 8.5), newTool("e", "1 €/heure", 8),
			untested, elsewhere, retired))
		checkResponses(t, newExecutor(s), map[string]string{
			`{tool(slug: "a") {alternatives {slug}}}`:                       `{"tool":{"alternatives":[{"slug":"d"},{"slug":"b"},{"slug":"c"},{"slug":"e"},{"slug":"u"}]}}`,
			`{tool(slug: "u") {alternatives(limit: 3) {slug}}}`:             `{"tool":{"alternatives":[{"slug":"a"},{"slug":"b"},{"slug":"d"}]}}`,
			`{tool(slug: "v") {alternatives {slug}}}`:                       `{"tool":{"alternatives":[]}}`,
			`{retiredTool(slug: "x") {alternatives(limit: 2) {slug name}}}`: `{"retiredTool":{"alternatives":[{"slug":"b","name":"Outil b"},{"slug":"a","name":"Outil a"}]}}`,
			`{tools(filter: {slugs: ["a", "b"]}) {items {one: alternatives(limit: 1) {slug alternatives(limit: 1) {slug}} two: alternatives(limit: 2) {slug}}}}`: `{"tools":{"items":[` +
				`{"one":[{"slug":"d","alternatives":[{"slug":"a"}]}],"two":[{"slug":"d"},{"slug":"b"}]},{"one":[{"slug":"a","alternatives":[{"slug":"d"}]}],"two":[{"slug":"a"},{"slug":"d"}]}]}}`,
		})
	})
}
