package timetravel_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// requests returns the addresses that are recorded: every path, lists with
// several pages and parameters, and tools that most releases change.
func requests() []string {
	all := []string{
		"/api/v1/tools", "/api/v1/tools?page=2", "/api/v1/tools?limit=200", "/api/v1/tools?limit=40&page=2", "/api/v1/tools?page=900",
		"/api/v1/tools?category=code&sort=name_asc", "/api/v1/tools?category=vide", "/api/v1/tools?limit=9&page=3&sort=name_desc",
		"/api/v1/tools?score_min=6.5&obsolescence_max=5&sort=score_asc", "/api/v1/tools?search=texte", "/api/v1/tools?search=texte+5",
		"/api/v1/tools?search=txete", "/api/v1/tools?search=otuil+texte", "/api/v1/tools?search=zzzzzz", "/api/v1/tools?search=texte+3",
		"/api/v1/tools?search=outil", "/api/v1/tools?search=t0&sort=name_desc&limit=7&page=2",
		"/api/v1/comparatifs", "/api/v1/comparatifs?limit=10&page=3", "/api/v1/comparatifs?category=voix", "/api/v1/comparatifs/inconnu",
		"/api/v1/pricing?limit=200", "/api/v1/pricing?limit=30&page=2", "/api/v1/pricing?category=voix&limit=5",
		"/api/v1/cimetiere", "/api/v1/cimetiere?reason=pivot", "/api/v1/cimetiere?category=code&limit=4&page=2",
		"/api/v1/categories", "/api/v1/stats",
	}
	for i := range 10 {
		all = append(all, fmt.Sprintf("/api/v1/comparatifs/c%d", i))
	}
	slugs := []string{"inconnu"}
	for i := range 18 {
		slugs = append(slugs, fmt.Sprintf("t%02d", i))
	}
	for _, slug := range slugs {
		all = append(all, "/api/v1/tools/"+slug, "/api/v1/tools/"+slug+"/versions", "/api/v1/pricing/"+slug, "/api/embeddings/"+slug)
	}
	return all
}

// queries are GraphQL selections that are recorded.
var queries = []string{
	`{feed {release updatedAt credit} stats {toolsTotal toolsTested toolsAvgScore toolsAvgScoreOrZero toolsRetired comparisonsTotal}}`,
	`{tools(limit: 60) {meta {total page limit pages} items ` + allOfTool + `}}`,
	`{tools(page: 3, limit: 25, sort: name_asc) {meta {total} items {slug name mainstream tier}}}`,
	`{tools(sort: updated_desc, limit: 100) {items {slug updatedAt}} oldest: tools(sort: updated_asc, limit: 100) {items {slug}}}`,
	`{tools(sort: price_asc, limit: 100) {items {slug priceAmount pricePeriod}} dear: tools(sort: price_desc, limit: 100) {items {slug}}}`,
	`{tools(sort: name_desc, limit: 200) {items {slug}} worst: tools(sort: score_asc, limit: 200) {items {slug score}}}`,
	`{tools(filter: {categories: ["code", "voix"], pricings: [payant, freemium], icps: [mixte], scoreMin: 3, scoreMax: 9.5}) {meta {total} items {slug}}}`,
	`{tools(filter: {verifiabilityMin: 2, verifiabilityMax: 9, obsolescenceMax: 6, priceMax: 80, updatedSince: "2025-06-01"}) {meta {total} items {slug}}}`,
	`{tools(filter: {updatedSince: "2026-01-01"}, limit: 200) {meta {total} items {slug updatedAt}}}`,
	`{tools(filter: {search: "texte"}) {meta {total} items {slug}} byName: tools(filter: {search: "out"}, sort: name_asc) {items {slug}}}`,
	`{tools(filter: {search: "txete"}) {meta {total} items {slug}} two: tools(filter: {search: "otuil 5"}) {items {slug}}}`,
	`{tools(filter: {search: "texte 4"}) {meta {total} items {slug}} other: tools(filter: {search: "Txete"}) {meta {total}}}`,
	`{toolGroups(by: category) {key count tested avgScore minScore maxScore} pricing: toolGroups(by: pricing) {key count} icp: toolGroups(by: icp) {key count avgScore}}`,
	`{toolGroups(by: tier, filter: {scoreMin: 2, search: "outil"}) {key count tested avgScore minScore maxScore}}`,
	`{scoreHistogram {from to count} some: scoreHistogram(filter: {categories: ["voix"], priceMax: 50}) {count}}`,
	`{priceChangeCounts {month category count}}`,
	`{priceChangeCounts(since: "2025-12-01", filter: {pricings: [payant]}) {month category count}}`,
	`{categories {slug label toolCount avgScore avgScoreOrZero tools(limit: 4) {slug name category {label}}}}`,
	`{category(slug: "code") {label tools(sort: price_desc, limit: 50) {slug}} vide: category(slug: "vide") {slug label}}`,
	`{comparisons(limit: 100) {meta {total} items {slug title winnerName winnerNote updatedAt canonicalUrl toolA {__typename slug name score category {label}} toolB {__typename slug name categorySlug} winner {slug name}}}}`,
	`{comparisons(category: "chat", limit: 10, page: 2) {meta {total pages} items {slug toolA {slug comparisons(limit: 3) {slug toolB {name}}}}}}`,
	`{comparison(slug: "c3") {title winner {name comparisons {slug}}} comparison9: comparison(slug: "c9") {toolB {... on RetiredTool {reason retiredAt note} ... on Tool {price}}}}`,
	`{retiredTools(limit: 100) {meta {total} items {slug name score reason retiredAt note categorySlug category {label toolCount} comparisons {slug winnerName}}}}`,
	`{retiredTools(reason: pivot) {meta {total} items {slug}} code: retiredTools(category: "code", limit: 5, page: 2) {items {slug versions(limit: 3) {firstRelease lastRelease type fields before after}}}}`,
	`{releases {totalCount nodes {number date publishedAt readable stats {toolsTotal toolsAvgScore toolsRetired comparisonsTotal}} pageInfo {hasNextPage hasPreviousPage}}}`,
	`{changes(first: 40, order: newest_first) {nodes {id type release publishedAt slug category otherCategory fields before after tool {slug name score price}} pageInfo {hasNextPage endCursor}}}`,
	`{changes(first: 100, types: [price_changed, tool_retired, catalog_published], order: newest_first) {nodes {id type release slug tool {name category {label}}}}}`,
	`{changes(first: 200, after: "evt_60", category: "code") {nodes {id type slug fields} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
	`{tools(sort: name_asc, limit: 20) {items {slug history {at pricing price score} versions(limit: 5) {firstRelease lastRelease date type fields before after}}}}`,
	`{tools(limit: 20) {items {slug comparisonConnection(first: 2) {totalCount nodes {slug toolB {name}}} changes(first: 3) {nodes {id type release fields after} pageInfo {hasNextPage}}}}
		retiredTools {items {slug changes(last: 2) {edges {cursor node {type release}}}}} categories {slug toolConnection(last: 3, sort: price_asc) {totalCount nodes {slug price}}}}`,
	`{nodes(ids: ["tool/t00", "tool/t02", "category/code", "comparison/c3", "release/1"]) {__typename ... on ComparedTool {name score} ... on Category {toolCount} ... on Comparison {winnerName} ... on Release {date}}}`,
	`{changes(last: 20, slug: "t01") {nodes {id type release} pageInfo {hasNextPage hasPreviousPage}} prices: changes(fields: ["price", "winner"], last: 30) {nodes {id fields}}
		second: changes(release: 2) {nodes {id}} third: changes(release: 3, order: newest_first, types: [tool_updated, comparatif_updated]) {nodes {id slug}}}`,
	`{a: toolVersions(slug: "t00") {slug versions {firstRelease lastRelease type}} b: toolVersions(slug: "t01", limit: 2) {versions {firstRelease lastRelease fields}} c: toolVersions(slug: "inconnu") {slug}}`,
	`{a: tool(slug: "t00") ` + allOfTool + ` b: tool(slug: "t01") ` + allOfTool + ` retired: retiredTool(slug: "t02") {note}}`,
	embeddingsOf(18),
	`{tools(limit: 40, sort: score_asc) {items {slug embeddings {hash chunkCount chunks {id text}}}}}`,
}

// embeddingsOf selects the embeddings of some tools.
func embeddingsOf(tools int) string {
	var fields strings.Builder
	for i := range tools {
		fmt.Fprintf(&fields, "t%d: embeddings(slug: %q) %s ", i, fmt.Sprintf("t%02d", i), allOfEmbeddings)
	}
	return "{" + fields.String() + "}"
}

const allOfEmbeddings = `{slug name canonicalUrl hash updatedAt chunkCount chunks {id text metadata {slug section position canonicalUrl tool category score verifiability updatedAt}}}`

const allOfTool = `{slug name domain categorySlug category {slug label toolCount avgScore} icp icpCode pricing price priceAmount pricePeriod
	score verifiability obsolescence tagline canonicalUrl avisUrl alternativesUrl updatedAt tier mainstream
	priceHistory {changedAt price pricing previousPrice previousPricing} comparisons {slug title toolA {slug} toolB {slug name} winner {name}}}`

// connections are lists that are read in both directions, page by page; %s stands
// for the arguments.
var connections = []string{
	`{list: toolConnection(%s, sort: price_desc, filter: {scoreMin: 4}) {totalCount edges {cursor node {slug score}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
	`{list: toolConnection(%s, filter: {search: "outil"}) {totalCount nodes {slug comparisons {slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
	`{list: comparisonConnection(%s) {totalCount nodes {slug winnerName} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
	`{list: retiredToolConnection(%s) {totalCount nodes {slug retiredAt} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
	`{list: releases(%s) {totalCount nodes {number date} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`,
}

// run executes a selection with what comes before it, such as a directive.
type run func(selection string) string

// walk returns the first pages of a connection, forwards and backwards.
func walk(t testing.TB, query run, connection string) string {
	t.Helper()
	var all strings.Builder
	for _, way := range [][3]string{{"first", "after", "endCursor"}, {"last", "before", "startCursor"}} {
		arguments := way[0] + ": 5"
		for range 4 {
			data := query(fmt.Sprintf(connection, arguments))
			all.WriteString(data + "\n")
			var page struct {
				List struct{ PageInfo map[string]any }
			}
			check.OK(t, json.Unmarshal([]byte(data), &page), data)
			cursor, more := page.List.PageInfo[way[2]].(string)
			if !more {
				break
			}
			arguments = fmt.Sprintf("%s: 5, %s: %q", way[0], way[1], cursor)
		}
	}
	return all.String()
}

// era is what a release returned when it was the newest.
type era struct {
	release int
	date    string
	rest    map[string]string // by address
	header  map[string]string // the Link header and total of a list
	graph   map[string]string // by selection
}

// readEra reads everything of the newest release.
func readEra(t testing.TB, s *server, release int, date string) *era {
	t.Helper()
	e := &era{release: release, date: date, rest: map[string]string{}, header: map[string]string{}, graph: map[string]string{}}
	for _, target := range requests() {
		got := s.get(developer, target)
		check.MustTrue(t, got.Code == 200 || got.Code == 404, "release %d: %s: got %d %s", release, target, got.Code, got.Body)
		e.rest[target] = fmt.Sprint(got.Code, " ", got.Header().Get("X-Service-Updated-At"), " ", got.Body)
		e.header[target] = got.Header().Get("X-Total-Count") + " " + got.Header().Get("Link")
		check.Equal(t, got.Header().Get("X-Service-Release"), fmt.Sprint(release), "%s: X-Service-Release", target)
	}
	e.eachQuery(t, func(selection string) string { return result(t, s, selection, nil) }, func(selection, data string) { e.graph[selection] = data })
	return e
}

// result executes a document that must succeed.
func result(t testing.TB, s *server, document string, variables map[string]any) string {
	t.Helper()
	got := s.query(t, document, variables)
	check.MustTrue(t, len(got.Errors) == 0, "%s %v: got %v", document, variables, got.Errors)
	return string(got.Data)
}

func (e *era) eachQuery(t testing.TB, query run, do func(selection, data string)) {
	t.Helper()
	for _, selection := range queries {
		do(selection, query(selection))
	}
	for _, connection := range connections {
		do(connection, walk(t, query, connection))
	}
}

// checkREST requests everything of an earlier release.
func (e *era) checkREST(t testing.TB, s *server, asOf string) {
	t.Helper()
	for target, want := range e.rest {
		got := s.get(developer, with(target, "as_of", asOf))
		if text := fmt.Sprint(got.Code, " ", got.Header().Get("X-Service-Updated-At"), " ", got.Body); text != want {
			t.Errorf("%s as of %s, release %d: differs %s", target, asOf, e.release, differsAt(text, want))
			continue
		}
		check.Equal(t, got.Header().Get("X-Service-Release"), fmt.Sprint(e.release), "%s as of %s: X-Service-Release", target, asOf)
		if got.Code != 200 {
			continue
		}
		links := strings.ReplaceAll(got.Header().Get("X-Total-Count")+" "+got.Header().Get("Link"), "&as_of="+asOf, "")
		if strings.HasPrefix(e.header[target], " ") {
			continue // no list
		}
		if pages := strings.Count(e.header[target], `rel="`); strings.Count(got.Header().Get("Link"), "as_of="+asOf) != pages || links != e.header[target] {
			t.Errorf("%s as of %s: got Link %s, want as_of in each of %s", target, asOf, got.Header().Get("Link"), e.header[target])
		}
	}
}

// checkGraphQL executes everything as of a release.
func (e *era) checkGraphQL(t testing.TB, s *server, before string, variables map[string]any) {
	t.Helper()
	e.eachQuery(t, func(selection string) string { return result(t, s, before+selection, variables) }, func(selection, data string) {
		if want := e.graph[selection]; data != want {
			t.Errorf("release %d: %s %s: differs %s", e.release, before, selection, differsAt(data, want))
		}
	})
}

// dayOf returns a day on which a release is the newest; "" if there is none.
func dayOf(eras []*era, e *era) string {
	for _, day := range []string{e.date, "2026-01-08", "2026-02-27", "2026-04-01", "2027-01-01"} {
		newest := 0
		for _, other := range eras {
			if other.date <= day {
				newest = max(newest, other.release)
			}
		}
		if newest == e.release {
			return day
		}
	}
	return ""
}

// TestReplay publishes random releases and records what each of them returns.
// Later, all of that is returned again, byte for byte.
func TestReplay(t *testing.T) {
	t.Parallel()
	testkit.EachInFull(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		s := newServer(t, db)
		var eras []*era
		for i := range dates {
			number := s.publish(t, db, randomCatalog(i, 60))
			eras = append(eras, readEra(t, s, number, dates[i]))
		}
		checkVariety(t, eras)
		days := 0
		other := newServer(t, db) // which has nothing in memory
		for _, e := range eras {
			e.checkREST(t, s, fmt.Sprint(e.release))
			e.checkREST(t, other, fmt.Sprint(e.release))
			e.checkGraphQL(t, s, fmt.Sprintf("query @asOf(release: %d) ", e.release), nil)
			e.checkGraphQL(t, other, "query ($r: Int) @asOf(release: $r) ", map[string]any{"r": json.Number(fmt.Sprint(e.release))})
			if day := dayOf(eras, e); day != "" {
				days++
				e.checkREST(t, s, day)
				e.checkGraphQL(t, s, fmt.Sprintf("query @asOf(date: %q) ", day), nil)
				e.checkGraphQL(t, s, "query ($d: Date!) @asOf(date: $d) ", map[string]any{"d": day})
			}
		}
		check.True(t, days >= 7, "got %d releases with a day, want at least 7", days)
		checkPruned(t, db, s, other, eras)
	})
}

// checkVariety checks that the releases differ, so that the test is meaningful.
func checkVariety(t testing.TB, eras []*era) {
	t.Helper()
	for key := range eras[0].graph {
		seen := map[string]bool{}
		for _, e := range eras {
			seen[e.graph[key]] = true
		}
		check.True(t, len(seen) >= 3, "%s: got %d different responses, want several", key, len(seen))
	}
	same := 0
	for key := range eras[0].rest {
		seen := map[string]bool{}
		for _, e := range eras {
			_, body, _ := strings.Cut(e.rest[key], "{")
			seen[body] = true
		}
		if len(seen) < 2 {
			same++
		}
	}
	check.True(t, same <= len(eras[0].rest)/8,
		"got %d of %d paths that always return the same, want few", same, len(eras[0].rest))
	for name, pattern := range map[string]string{
		"a tool that is retired": `404 .*is retired`, "an unknown tool": `404 .*No tool has the slug`, "an empty search": `"data":\[\]`,
		"a tool without embeddings": `404 .*has no embeddings`, "a tool that was removed": `"tool_retired"`,
	} {
		if !slices.ContainsFunc(eras, func(e *era) bool {
			for _, body := range e.rest {
				if regexp.MustCompile(pattern).MatchString(body) {
					return true
				}
			}
			return false
		}) {
			t.Errorf("got no response with %s", name)
		}
	}
}

// checkPruned removes the history of some releases: they can no longer be read,
// and the others are unchanged.
func checkPruned(t testing.TB, db *store.Store, s, other *server, eras []*era) {
	t.Helper()
	const from = 6
	unaware := newServer(t, db)
	unaware.get(anonymous, "/api/v1/stats")
	check.Try(publish.Prune(t.Context(), db, from)).OK(t)
	cannot := func(release int) string {
		return fmt.Sprintf("Release %d is not available. Available releases: %d (%s) to %d (%s).", release, from, eras[from-1].date, len(eras), eras[len(eras)-1].date)
	}
	for _, e := range eras[:from-1] { // even a server that has not detected the pruning returns which releases can be read
		got := unaware.get(anonymous, fmt.Sprintf("/api/v1/tools?as_of=%d", e.release))
		check.Equal(t, got.Code, 404, "release %d, pruned just now", e.release)
		check.Contains(t, got.Body.String(), cannot(e.release), "release %d, pruned just now", e.release)
	}
	if _, err := db.CurrentRelease(t.Context()); err != nil { // the program detects the pruning and restarts its cache
		t.Fatal(err)
	}
	s.responses.Restart(len(eras))
	for _, s := range []*server{s, newServer(t, db)} {
		for _, e := range eras {
			if e.release >= from {
				e.checkREST(t, s, fmt.Sprint(e.release))
				continue
			}
			got := s.get(anonymous, fmt.Sprintf("/api/v1/stats?as_of=%d", e.release))
			check.Equal(t, got.Code, 404, "pruned release %d", e.release)
			check.Contains(t, got.Body.String(), cannot(e.release), "pruned release %d", e.release)
		}
		got := result(t, s, `{releases(last: 6) {nodes {number readable}}}`, nil)
		check.True(t, strings.Contains(got, `{"number":6,"readable":true},{"number":5,"readable":false}`), "got %s, want release 6 to be the oldest that is readable", got)
	}
	// A server that has not detected the pruning may still serve what it has in
	// memory, but never a partial release.
	for _, e := range eras[:from-1] {
		for target, want := range e.rest {
			got := other.get(developer, with(target, "as_of", e.release))
			text := fmt.Sprint(got.Code, " ", got.Header().Get("X-Service-Updated-At"), " ", got.Body)
			check.True(t, text == want || got.Code == 404 && strings.Contains(text, fmt.Sprintf("elease %d", e.release)),
				"%s as of pruned release %d: got %.200s", target, e.release, cmp.Or(text, "nothing"))
		}
	}
}
