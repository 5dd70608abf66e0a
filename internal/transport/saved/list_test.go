package saved_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/transport/saved"
)

// rowsOf returns the lines of a table without its heading.
func rowsOf(csv string) []string {
	return strings.Split(strings.TrimSuffix(csv, "\r\n"), "\r\n")[1:]
}

// A caller with a key gets the whole list as a table, from one release. Each page that is
// read counts.
func TestWholeLists(t *testing.T) {
	defer saved.SetPageSizes(20, 5)()
	each(t, func(t *testing.T, s *service) {
		left := func(r got) int {
			n, _ := strconv.Atoi(r.Header.Get("X-Ratelimit-Remaining"))
			return n
		}
		owners := []string{ana, bea} // of a few queries each
		for i, c := range []struct {
			name, text      string
			rows, requests  int
			total, firstRow string
		}{
			{"page", `{tools(sort: name_asc) {items {slug name}}}`, 48, 3, "48", "aquatinte-4,Aquatinte 4"},
			{"largest-page", `query ($icps: [Icp!]) {tools(limit: 200, sort: name_asc, filter: {icps: $icps}) {items {slug}}}`, 48, 3, "48", "aquatinte-4"},
			{"connection", `{toolConnection(sort: name_asc) {nodes {slug}}}`, 48, 3, "48", "aquatinte-4"},
			{"edges", `{toolConnection(sort: name_asc) {edges {node {slug}}}}`, 48, 3, "48", "aquatinte-4"},
			{"found", `{toolConnection(filter: {search: "de"}) {nodes {slug}}}`, -1, -1, "", ""},
			{"nested", `{tools(sort: name_asc) {items {slug category {slug} priceHistory {price}}}}`, -1, 3, "48", ""},
			{"as-of", `query @asOf(release: 1) {tools(sort: name_asc) {items {slug}}}`, -1, 3, "", ""},
		} {
			path, _ := s.save(t, owners[i%2], c.name, c.text)
			before := left(s.get(t, "/api/v1/stats", s.as(ana)...))
			r := s.get(t, path+".csv", s.as(ana)...).want(t, 200, "slug")
			total, _ := strconv.Atoi(r.Header.Get("X-Total-Count"))
			if c.requests < 0 { // for the items that the search finds
				c.rows, c.requests, c.firstRow = total, (total+19)/20, rowsOf(r.body)[0]
			}
			check.Equal(t, before-left(r), c.requests, "%s: requests", c.name)
			if rows := rowsOf(r.body); c.rows > 0 {
				check.Equal(t, len(rows), c.rows, "%s: rows", c.name)
				check.Equal(t, rows[0], c.firstRow, c.name)
			} else if len(rows) < 20 {
				t.Errorf("%s: got %d rows, want more than a page", c.name, len(rows))
			}
			if c.total != "" {
				check.Equal(t, r.Header.Get("X-Total-Count"), c.total, c.name)
			}
			check.Equal(t, r.Header.Get("Cache-Control"), "private, no-cache", c.name)
			lines := s.get(t, path+".ndjson", s.as(ana)...).want(t, 200, "slug")
			check.Equal(t, strings.Count(lines.body, "\n"), len(rowsOf(r.body)), "%s: lines", c.name)

			// A 304 reads nothing.
			again := s.get(t, path+".csv", append(s.as(ana), "If-None-Match", r.Header.Get("Etag"))...).want(t, 304, "")
			check.Equal(t, left(again), left(lines), "%s: requests of a 304", c.name)
		}

		// All changes, whose number nothing knows, with the smaller size.
		path, _ := s.save(t, ana, "changes", `{changes {nodes {id}}}`)
		before := left(s.get(t, "/api/v1/stats", s.as(ana)...))
		r := s.get(t, path+".csv", s.as(ana)...).want(t, 200, "id")
		rows := rowsOf(r.body)
		seen := map[string]bool{}
		for _, row := range rows {
			seen[row] = true
		}
		check.Equal(t, len(seen), s.Store.Read.JournalEntry.Query().CountX(t.Context()), "changes")
		check.Equal(t, len(rows), len(seen), "rows")
		after := left(s.get(t, "/api/v1/stats", s.as(ana)...))
		if counted := before - after - 1; counted < len(rows)/20 || counted > len(rows)/20+2 {
			t.Errorf("got %d requests counted for %d changes, want one for each page", counted, len(rows))
		}
	})
}

// Others get the part that the query selects, with the length of the list and a link to
// the next part.
func TestPartsOfLists(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	paged, _ := s.save(t, ana, "paged", `query ($page: Int! = 1) {tools(page: $page, limit: 20, sort: name_asc) {items {slug}}}`)
	fixed, _ := s.save(t, ana, "fixed", `{tools(limit: 7) {items {slug}}}`)
	parts, _ := s.save(t, ana, "parts", `query ($after: String) {toolConnection(first: 20, after: $after, sort: name_asc) {nodes {slug}}}`)
	whole, _ := s.save(t, ana, "whole", `{tools(limit: 200) {items {slug}}}`)
	// Whatever the order of the arguments, this is a part.
	second, _ := s.save(t, bea, "second", `{tools(limit: 200, page: 2, sort: name_asc) {items {slug}}}`)
	check.Equal(t, s.get(t, second+".ndjson", s.as(ana)...).want(t, 200, "").body, "", "page 2 of 200")
	for _, format := range []string{".csv", ".json", ".ndjson"} {
		r := s.get(t, fixed+format, s.as(ana)...).want(t, 200, "slug")
		check.Equal(t, r.Header.Get("X-Total-Count"), "48", format)
		check.Equal(t, r.Header.Get("Link"), "", format)
	}
	check.Equal(t, len(rowsOf(s.get(t, fixed+".csv", s.as(ana)...).body)), 7)
	check.Equal(t, s.get(t, whole+".csv").want(t, 200, "slug").Header.Get("Cache-Control"), "s-maxage=60, stale-while-revalidate=60", "anonymous")
	for _, path := range []string{paged, parts} {
		seen, next := 0, path+".csv"
		for pages := 0; next != "" && pages < 5; pages++ {
			r := s.get(t, next).want(t, http.StatusOK, "slug")
			check.Equal(t, r.Header.Get("X-Total-Count"), "48", next)
			seen += len(rowsOf(r.body))
			link := r.Header.Get("Link")
			next, _, _ = strings.Cut(strings.TrimPrefix(link, "<https://palmares.example"), ">")
			if link != "" {
				check.Contains(t, link, `>; rel="next"`, path)
			}
		}
		check.Equal(t, seen, 48, path)
	}
}

// A list that is too expensive in large parts is read in smaller ones.
func TestExpensiveWholeList(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path, _ := s.save(t, ana, "expensive", `{tools(sort: name_asc) {items {slug alternatives(limit: 50) {slug}}}}`)
	r := s.get(t, path+".ndjson", s.as(ana)...).want(t, 200, "slug")
	slugs := map[string]bool{}
	for line := range strings.Lines(r.body) {
		before, _, _ := strings.Cut(line, `,"`)
		slugs[before] = true
	}
	check.Equal(t, len(slugs), 48)
}

// Parameters that a query does not have are named, and do not change the response.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path, _ := s.save(t, ana, "best", best)
	for query, want := range map[string]string{
		"?form=csv": "form (did you mean format?)", "?limits=3&nonsense=1": "limits (did you mean limit?), nonsense", "?limit=3": "", "?token=no": "",
	} {
		r := s.get(t, path+query)
		check.Equal(t, r.Header.Get("X-Unknown-Parameters"), want, query)
	}
	changes, _ := s.save(t, ana, "changes", `query ($slug: String) {changes(slug: $slug) {nodes {type}}}`)
	duels, _ := s.save(t, ana, "duels", `query ($of: String, $fixed: Int = 1) {comparisons(tool: $of, winner: "plum", page: $fixed) {items {slug}}}`)
	chosen, _ := s.save(t, ana, "chosen", `query ($in: [String!], $at: [String!]) {tools(filter: {categories: $in, domains: $at}) {items {slug}}}`)
	for target, want := range map[string]string{
		changes + "?slug=plum": "slug=plum (did you mean plume?)", changes + ".csv?slug=plum": "slug=plum (did you mean plume?)",
		changes + "?slug=plume": "", changes: "",
		duels + "?of=plum-e":                 "of=plum-e (did you mean plume?), winner=plum (did you mean plume?)",
		chosen + "?in=code&in=chatt&at=none.example": "in=chatt (did you mean chat?), at=none.example", chosen + "?in=code&in=chat": "",
	} {
		check.Equal(t, s.get(t, target).Header.Get("X-Unknown-Values"), want, target)
	}
}

// Relative dates count from the release that is read, whether they are given or a default.
func TestRelativeDates(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path, _ := s.save(t, ana, "old", `query ($before: Date! = "-6m") {tools(filter: {updatedBefore: $before}, sort: updated_asc, limit: 100) {items {slug}}}`)
	for relative, same := range map[string]string{
		"": "before=2026-05-10", "before=-6m": "before=2026-05-10", "before=-30d": "before=2026-10-11", "before=-1y": "before=2025-11-10",
		"before=latest": "before=2026-11-10", "before=previous": "before=2026-10-13",
		"as_of=7": "before=2026-04-13&as_of=7", "as_of=1&before=previous": "before=2026-03-03&as_of=1",
	} {
		check.Equal(t, s.get(t, path+"?"+relative).want(t, 200, "[").body, s.get(t, path+"?"+same).want(t, 200, "[").body, relative)
	}
	check.Equal(t, s.get(t, path+"?before=latest").body == s.get(t, path+"?before=-6m").body, false, "the same tools for both dates")
	s.get(t, path+"?before=-6w").want(t, 400, "before must be a valid date in the form YYYY-MM-DD, or one such as -30d, -6m, latest or previous")
	s.get(t, "/q/ana/openapi.json").want(t, 200, `"pattern": "^(\\d{4}-\\d{2}-\\d{2}|-[1-9][0-9]{0,3}[dmy]|latest|previous)$"`)
}
