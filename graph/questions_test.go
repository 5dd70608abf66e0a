package graph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

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
			Type, Date   string
		}
		type tool struct {
			Slug        string
			All, Oldest []version
		}
		several := 0
		for _, found := range decode[struct{ Tools struct{ Items []tool } }](t, mustExecute(t, e,
			`{tools {items {slug all: versions(limit: 50) {firstRelease lastRelease type date} oldest: versions(limit: 3, order: oldest_first) {firstRelease lastRelease type date}}}}`)).Tools.Items {
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
