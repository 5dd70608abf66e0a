package saved_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/transport/saved"
)

// rowsOf returns the lines of a table without its heading.
func rowsOf(csv string) []string { return strings.Split(strings.TrimSuffix(csv, "\r\n"), "\r\n")[1:] }

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
		counted := before - after - 1
		check.True(t, counted >= len(rows)/20 && counted <= len(rows)/20+2, "got %d requests counted for %d changes, want one for each page", counted, len(rows))
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
	twice, _ := s.save(t, ana, "twice", `query ($in: [String!]) {a: tools(filter: {slugs: $in}) {items {slug}} b: tools(filter: {slugs: $in}) {items {slug}}}`)
	for target, want := range map[string]string{
		twice + "?in=plum":     "in=plum (did you mean plume?)",
		changes + "?slug=plum": "slug=plum (did you mean plume?)", changes + ".csv?slug=plum": "slug=plum (did you mean plume?)",
		changes + "?slug=plume": "", changes: "",
		duels + "?of=plum-e":                         "of=plum-e (did you mean plume?), winner=plum (did you mean plume?)",
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

// A private query is invisible to everyone except its account.
func TestPrivateQueries(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		const unknown, unknownHash = "/q/ana/unknown", "/q/0123456789abcdef0123456789abcdef"
		named, permanent := s.save(t, ana, "secret", best, private)
		refused := func(name, path, similar string, headers ...string) {
			t.Helper()
			got, want := s.get(t, path, headers...), s.get(t, similar, headers...)
			for _, r := range []*http.Response{got.Response, want.Response} {
				for _, header := range []string{"X-Request-Id", "Date", "X-Ratelimit-Remaining", "Ratelimit"} {
					r.Header.Del(header)
				}
			}
			check.Equal(t, got.StatusCode, 404, "%s: %v: %d %v", name, got.Header, want.StatusCode, want.Header)
			check.Equal(t, got.body, want.body, "%s: %v: %d %v", name, got.Header, want.StatusCode, want.Header)
			check.Equal(t, fmt.Sprint(got.Header), fmt.Sprint(want.Header), "%s: %v: %d %v", name, got.Header, want.StatusCode, want.Header)
		}
		for range 2 { // before and after the response is cached
			refused("anonymous", named, unknown)
			refused("anonymous, by hash", permanent, unknownHash)
			refused("another account", named, unknown, s.as(bea)...)
			refused("another account, by hash", permanent, unknownHash, s.as(bea)...)
			refused("a wrong token", named+"?token=qt_AAAAAAAAAAAAAAAAAAAAAAAAAA", unknown+"?token=qt_AAAAAAAAAAAAAAAAAAAAAAAAAA")
			refused("CSV", named+".csv", unknown+".csv")
			for _, path := range []string{named, permanent} {
				r := s.get(t, path, s.as(ana)...).want(t, 200, `[{"slug":`)
				check.Equal(t, r.Header.Get("Cache-Control"), "private, no-cache", "%s: %v", path, r.Header)
				check.Equal(t, r.Header.Get("Cdn-Cache-Control"), "private, no-store", "%s: %v", path, r.Header)
			}
			s.get(t, named, "If-None-Match", s.get(t, named, s.as(ana)...).Header.Get("Etag")).want(t, 404, "")
		}

		// The same text saved by another account is another query.
		other, same := s.save(t, bea, "mine", best)
		check.Equal(t, same, permanent, "hash")
		refused("a name whose text is public elsewhere", named, unknown)
		for _, r := range []got{s.get(t, other), s.get(t, permanent)} {
			r.want(t, 200, `[{"slug":`)
			check.Lacks(t, r.Header.Get("Cache-Control"), "private")
		}
		s.save(t, bea, "mine", best, private)
		wait.Until(t, "the query is private", func() bool { return s.get(t, permanent).StatusCode == 404 })
		s.get(t, permanent, s.as(bea)...).want(t, 200, `[{"slug":`)

		// A token is for one query.
		token := func(email, name string) string {
			t.Helper()
			token := check.Try(s.other.SetToken(t.Context(), s.owner(t, email), name)).OK(t)
			return "?token=" + token
		}
		s.save(t, ana, "other", best+"#", private)
		query := token(ana, "secret")
		r := s.get(t, named+".csv"+query).want(t, 200, "slug,")
		check.Equal(t, r.Header.Get("X-Ratelimit-Tier"), "free", r.Header)
		check.Equal(t, r.Header.Get("Cdn-Cache-Control"), "private, no-store", r.Header)
		check.Equal(t, r.Header.Get("Cache-Control"), "private, no-cache", r.Header)
		s.get(t, permanent+query).want(t, 200, `[{"slug":`)
		refused("a token of another query", "/q/ana/other"+query, unknown+query)
		refused("a token of another account", "/q/bea/mine"+query, "/q/bea/unknown"+query)
		newer := token(ana, "secret")
		wait.Until(t, "the former token", func() bool { return s.get(t, named+query).StatusCode == 404 })
		s.get(t, named+newer).want(t, 200, `[{"slug":`)
		check.OK(t, s.other.RevokeToken(t.Context(), s.owner(t, ana), "secret"))
		wait.Until(t, "the revoked token", func() bool { return s.get(t, named+newer).StatusCode == 404 })
		public, _ := s.save(t, ana, "public", best+"# public")
		s.get(t, public).want(t, 200, "[")
		s.get(t, public+newer).want(t, 401, "The token is not valid")

		// Only the account sees the private ones in its document.
		paths := func(headers ...string) int {
			doc := check.Try(openapi3.NewLoader().LoadFromData([]byte(s.get(t, "/q/ana/openapi.json", headers...).want(t, 200, `"openapi"`).body))).OK(t)
			check.OK(t, doc.Validate(t.Context()))
			return doc.Paths.Len()
		}
		all, others, nobody := paths(s.as(ana)...), paths(s.as(bea)...), paths()
		check.Equal(t, all, 9)
		check.Equal(t, others, 3)
		check.Equal(t, nobody, 3)
	})
}

// Requests with a token count exactly against the quota of its owner, together
// with those of keys.
func TestTokenQuota(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		named, permanent := s.save(t, ana, "sheet", best, private)
		created := check.Try(s.other.SetToken(t.Context(), s.owner(t, ana), "sheet")).OK(t)
		token := "?token=" + created
		etag := s.get(t, named+".csv"+token).Header.Get("Etag") // the first counted request
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 8 {
			all.Go(func() {
				for i := range 130 {
					path, headers := named+".csv"+token, []string(nil)
					switch i % 3 {
					case 1:
						path, headers = permanent, s.as(ana)
					case 2:
						path += fmt.Sprintf("&limit=%d", 1+i%5)
					}
					r := s.get(t, path, headers...)
					mu.Lock()
					statuses[r.StatusCode]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		check.Equal(t, statuses[200], 999, statuses)
		check.Equal(t, statuses[429], 8*130-999, statuses)
		r := s.get(t, named+".csv"+token).want(t, 429, "The daily quota of 1000 requests is used up")
		check.True(t, r.Header.Get("Retry-After") != "", "got %v, want when to retry", r.Header)
		check.Equal(t, r.Header.Get("X-Ratelimit-Remaining"), "0", r.Header)
		s.get(t, named+token, "Accept", "text/html").want(t, 200, "<!doctype html>") // pages are free
		s.get(t, named+token+"&format=json", "Accept", "text/html").want(t, 429, "used up")
		s.get(t, named+".csv"+token, "If-None-Match", etag).want(t, 304, "")
		s.get(t, named).want(t, 404, "") // anonymous callers have their own quota
		s.get(t, "/q/ana/openapi.json", s.as(ana)...).want(t, 200, `"/q/ana/sheet"`)
	})
}

// A downgrade suspends the newest queries; only their owner sees the reason.
func TestSuspendedQueries(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		plan := func(plan auth.Plan) {
			t.Helper()
			check.OK(t, auth.NewAccounts(s.Store).SetPlan(t.Context(), s.owner(t, ana), plan))
		}
		plan(auth.Pro)
		for i := range 6 {
			s.save(t, ana, fmt.Sprintf("q%d", i), fmt.Sprintf("%s#%d", best, i))
		}
		s.get(t, "/q/ana/q5").want(t, 200, "[")
		plan(auth.Developer)
		wait.Until(t, "the newest is suspended", func() bool { return s.get(t, "/q/ana/q5").StatusCode == 404 })
		wait.Until(t, "the owner's key has the new plan", func() bool {
			return s.get(t, "/q/ana/q4", s.as(ana)...).Header.Get("X-Ratelimit-Tier") == "free"
		})
		s.get(t, "/q/ana/q5", s.as(ana)...).want(t, 403, "This saved query is suspended")
		s.get(t, "/q/ana/q4").want(t, 200, "[")
		plan(auth.Pro)
		wait.Until(t, "the newest is active again", func() bool { return s.get(t, "/q/ana/q5").StatusCode == 200 })
	})
}

// A download token gives access to downloads of lists, at the expense of its owner's
// quota, and to nothing else.
func TestDownloadTokens(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		accounts, owner := auth.NewAccounts(s.Store), s.owner(t, ana)
		token := check.Try(accounts.CreateDownloadToken(t.Context(), owner, "sheet")).OK(t)
		left := func(r got) int {
			n, _ := strconv.Atoi(r.Header.Get("X-Ratelimit-Remaining"))
			return n
		}

		before := left(s.get(t, "/api/v1/stats", s.as(ana)...))
		for _, path := range []string{
			"/api/v1/tools?format=csv&token=" + token, "/api/v1/tools?token=" + token + "&format=ndjson", "/api/v1/pricing?format=csv&dialect=excel&token=" + token,
			"/api/v1/comparatifs.csv?token=" + token, "/api/v1/tools.ndjson?token=" + token, "/api/v1/cimetiere?format=csv&token=" + token, "/api/v1/categories?format=csv&token=" + token,
		} {
			r := s.get(t, path).want(t, 200, "slug")
			if before--; left(r) != before || r.Header.Get("X-Unknown-Parameters") != "" || r.Header.Get("X-Ratelimit-Tier") != "free" || r.Header.Get("Cdn-Cache-Control") != "private, no-store" {
				t.Errorf("%s: got %v, want the owner's quota with %d left, and a private response", path, r.Header, before)
			}
			for name, values := range r.Header {
				check.Lacks(t, fmt.Sprint(values), token, "%s: the token in %s", path, name)
			}
		}
		r := s.get(t, "/api/v1/tools?format=csv&token="+token)
		s.get(t, "/api/v1/tools?format=csv&token="+token, "If-None-Match", r.Header.Get("Etag")).want(t, 304, "")
		// A key takes precedence.
		check.Equal(t, left(s.get(t, "/api/v1/tools?format=csv&token="+token, s.as(bea)...).want(t, 200, "slug")), 999, "with another key: left")

		const elsewhere = "gives access only to files, downloads"
		secret, _ := s.save(t, ana, "secret", best, private)
		for path, want := range map[string]struct {
			status int
			part   string
		}{
			"/api/v1/tools?token=" + token:                                 {401, elsewhere},
			"/api/embeddings?token=" + token:                               {401, elsewhere},
			"/graphql?query=%7Bstats%7BtoolsTotal%7D%7D&token=" + token:    {401, elsewhere},
			"/mcp?token=" + token:                                          {401, elsewhere},
			secret + ".csv?token=" + token:                                 {404, "no saved query"},
			"/q/palmares/growth.csv?token=" + token:                        {200, "period"},
			"/q/palmares/growth.csv?token=dt_AAAAAAAAAAAAAAAAAAAAAAAAAA":   {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv":                                     {401, "an API key"},
			"/api/v1/tools?format=csv&token=dt_":                           {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv&token=dt_AAAAAAAAAAAAAAAAAAAAAAAAAA": {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv&token=qt_" + token[3:]:               {401, "an API key"},
			"/api/v1/tools?format=csv&token=" + strings.ToLower(token):     {401, "does not exist or was revoked"},
			"/api/v1/tools?format=&token=" + token:                         {400, "format"},
			"/api/v1/openapi.json?token=" + token:                          {200, "openapi"},
			"/api/v1/tools?format=csv&token=" + token + "&limit=1":         {400, "limit"},
			"/api/v1/unknown?format=csv&token=" + token:                    {401, elsewhere},
		} {
			s.get(t, path).want(t, want.status, want.part)
		}
		for _, authorization := range []string{"Bearer " + token, "Basic " + base64.StdEncoding.EncodeToString([]byte(token+":"))} {
			s.get(t, "/api/v1/tools?format=csv", "Authorization", authorization).want(t, 401, "malformed")
		}

		list := check.Try(accounts.DownloadTokens(t.Context(), owner)).OK(t)
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, list[0].ID))
		wait.Until(t, "the token is revoked", func() bool {
			return s.get(t, "/api/v1/tools?format=csv&token="+token).StatusCode == http.StatusUnauthorized
		})
		log := s.log.String()
		check.Lacks(t, log, token)
		check.Contains(t, log, "/api/v1/tools")
	})
}

// Thousands may share the address of a spreadsheet's server: what is answered from the cache
// does not count against it, unless it is asked for too often.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path, _ := s.save(t, ana, "best", best)
	hidden, _ := s.save(t, ana, "hidden", best, private)
	token := check.Try(s.other.SetToken(t.Context(), s.owner(t, ana), "hidden")).OK(t)
	shared := []string{"X-Forwarded-For", "192.0.2.200"}
	for range 11 { // the first is executed, nine are free, and the last is too often
		s.get(t, path+".csv", shared...).want(t, 200, "slug")
	}
	s.Clock.Add(time.Second)
	s.get(t, path+".csv", shared...).want(t, 200, "slug")
	s.get(t, path+".json", shared...).want(t, 200, "slug") // not cached yet
	for range auth.Anonymous.Terms().DailyQuota - 3 {
		s.get(t, "/api/v1/stats", shared...).want(t, 200, "tools")
	}
	s.get(t, "/api/v1/stats", shared...).want(t, 429, "used up")
	s.get(t, path+".csv", shared...).want(t, 200, "slug") // still free
	// Others pay for each request.
	for _, want := range []string{"999", "998"} {
		check.Equal(t, s.get(t, path+".csv", s.as(bea)...).Header.Get("X-Ratelimit-Remaining"), want, "with a key")
	}
	for _, want := range []string{"999", "998"} {
		check.Equal(t, s.get(t, hidden+".csv?token="+token).want(t, 200, "slug").Header.Get("X-Ratelimit-Remaining"), want, "with a token")
	}
}
