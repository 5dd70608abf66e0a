package saved_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
	"palmares/internal/transport/saved"
	"palmares/rest"
)

const (
	ana, bea = "ana@example.com", "bea@example.com"

	best = `query Best($limit: Int! = 2, $score: Float, $icps: [Icp!], $search: String) {
  tools(limit: $limit, filter: {scoreMin: $score, icps: $icps, search: $search}) {
    items {
      slug
      name
      score
      category {
        label
      }
    }
  }
}
`
)

// service is a server with two accounts. Their queries are saved by another one, so that
// the server has to notice.
type service struct {
	*servertest.Server
	other *saved.Queries
	log   *testkit.Log
	keys  map[string]string
}

// each runs a test with all editions of the demo catalog on each kind of database.
func each(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) { test(t, start(t, db)) })
}

// onSQLite is for tests that do not depend on the database.
func onSQLite(t *testing.T) *service { return start(t, testkit.Open(t, testkit.SQLite(t))) }

func start(t *testing.T, db *store.Store) *service {
	t.Helper()
	s := &service{log: &testkit.Log{}, keys: map[string]string{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.Server = servertest.New(t, servertest.On(db), func(c *server.Config) {
		c.Demo, c.Log, c.Proxies = true, log, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	})
	accounts := auth.NewAccounts(db)
	for _, email := range []string{ana, bea} {
		owner, err := accounts.Create(t.Context(), email, auth.Developer)
		check.OK(t, err)
		s.keys[email], _, err = accounts.CreateKey(t.Context(), owner, "test")
		check.OK(t, err)
	}
	memory := cache.New(1<<20, nil, log)
	s.other = check.Try(saved.New(saved.Config{
		Service: rest.Config{PublicURL: servertest.URL}, Store: db, Executor: graphtest.New(graph.Config{Catalog: db, Cache: memory}), Cache: memory, Log: log,
	})).OK(t)
	return s
}

func (s *service) owner(t testing.TB, email string) *ent.Account {
	t.Helper()
	return check.Try(auth.NewAccounts(s.Store).Find(t.Context(), email)).OK(t)
}

// save saves a query and returns the paths of both URLs.
func (s *service) save(t testing.TB, email, name, text string, change ...func(*saved.NewQuery)) (named, permanent string) {
	t.Helper()
	handle, _, _ := strings.Cut(email, "@")
	query := saved.NewQuery{Name: name, Handle: handle, Text: text, Public: true}
	for _, f := range change {
		f(&query)
	}
	q := check.Try(s.other.Save(t.Context(), s.owner(t, email), query)).OK(t)
	return strings.TrimPrefix(q.Named, servertest.URL), strings.TrimPrefix(q.Permanent, servertest.URL)
}

func private(q *saved.NewQuery) { q.Public = false }

// got is a response.
type got struct {
	*http.Response
	body string
}

var clients atomic.Int64

// get sends a request from its own IP address, because anonymous callers have a
// quota.
func (s *service) get(t testing.TB, path string, headers ...string) got {
	t.Helper()
	return s.send(t, http.MethodGet, path, "", headers...)
}

func (s *service) send(t testing.TB, method, path, body string, headers ...string) got {
	t.Helper()
	w := s.Do(method, path, body, append([]string{"X-Forwarded-For", fmt.Sprintf("2001:db8:0:%x::1", clients.Add(1))}, headers...)...)
	response := w.Result()
	response.Request = httptest.NewRequest(method, path, nil)
	return got{response, w.Body.String()}
}

func (s *service) as(email string) []string {
	return []string{"Authorization", "Bearer " + s.keys[email]}
}

// want checks the status and a part of the body.
func (g got) want(t testing.TB, status int, part string) got {
	t.Helper()
	check.Equal(t, g.StatusCode, status, g.Request.URL)
	check.Contains(t, g.body, part, g.Request.URL)
	return g
}

func TestSavedQueries(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		named, permanent := s.save(t, ana, "best", best, func(q *saved.NewQuery) { q.Description = "Best <b>tools</b>" })
		check.Must(t, named, "/q/ana/best", permanent)
		check.MustTrue(t, regexp.MustCompile(`^/q/[0-9a-f]{32}$`).MatchString(permanent), "got %s and %s, want the URLs by name and by hash", named, permanent)

		t.Run("formats", func(t *testing.T) {
			const item = `{"slug":"bosco-et-matelots","name":"Bosco & Matelots","score":9.4,"category":{"label":"Agents"}}`
			for _, c := range []struct{ path, accept, media, start string }{
				{named, "", "application/json", "[" + item + ","},
				{named, "*/*", "application/json", "[" + item + ","},
				{named, "text/html", "text/html; charset=utf-8", "<!doctype html>"},
				{named, "text/markdown", "text/markdown; charset=utf-8", "[Saved queries]("},
				{named + ".json", "text/html", "application/json", "[" + item + ","},
				{named, "text/csv", "text/csv; charset=utf-8; header=present", "slug,name,score,category.label\r\nbosco"},
				{named, "application/x-ndjson, application/json;q=0.5", "application/x-ndjson", item + "\n{"},
				{named + ".json", "text/csv", "application/json", "[" + item + ","},
				{named + ".csv", "", "text/csv; charset=utf-8; header=present", "slug,name,score,category.label\r\nbosco"},
				{named + ".ndjson", "", "application/x-ndjson", item + "\n{"},
				{named + "?format=csv", "application/json", "text/csv; charset=utf-8; header=present", "slug,"},
				{named + ".csv?dialect=excel-fr", "", "text/csv; charset=utf-8; header=present", "\uFEFFslug;name;score;category.label\r\nbosco-et-matelots;Bosco & Matelots;9,4;Agents"},
				{permanent + ".csv", "", "text/csv; charset=utf-8; header=present", "slug,"},
				{permanent, "", "application/json", "[" + item + ","},
			} {
				var headers []string
				if c.accept != "" {
					headers = []string{"Accept", c.accept}
				}
				r := s.get(t, c.path, headers...)
				vary := "Authorization, Accept-Encoding"
				if !strings.Contains(c.path, ".") && !strings.Contains(c.path, "format=") {
					vary += ", Accept"
				}
				if strings.HasPrefix(c.media, "text/html") || strings.HasPrefix(c.media, "text/markdown") {
					vary += ", Accept-Language" // pages for people
				}
				if r.StatusCode != 200 || !strings.HasPrefix(r.body, c.start) || r.Header.Get("Content-Type") != c.media || r.Header.Get("Vary") != vary {
					t.Errorf("%s, Accept %q: got %d %q, %q, %.150s, want %s, %q, %s", c.path, c.accept, r.StatusCode, r.Header.Get("Content-Type"), r.Header.Get("Vary"), r.body, c.media, vary, c.start)
				}
			}
		})

		t.Run("parameters", func(t *testing.T) {
			count := func(query string) int {
				var items []any
				r := s.get(t, named+query).want(t, 200, "[")
				_ = json.Unmarshal([]byte(r.body), &items)
				return len(items)
			}
			for query, want := range map[string]int{"": 2, "?limit=3": 3, "?limit=200&score=9": 3, "?unknown=x&limit=1": 1, "?limit=200&search=plume": count("?search=plume&limit=200")} {
				check.Equal(t, count(query), want, "%s: items", query)
			}
			all, one, two := count("?limit=200"), count("?limit=200&icps=agentic_engineer"), count("?limit=200&icps=agentic_engineer&icps=vibe_coder")
			check.True(t, one != 0 && two > one && two <= all, "got %d, %d and %d items for one, two and all audiences, want more each time", one, two, all)
			for query, want := range map[string]string{
				"?limit=x":                            `limit must be an integer`,
				"?limit=201":                          `limit must be an integer from 1 to 200 (got 201)`,
				"?search=" + strings.Repeat("x", 201): `must have at most 200 characters`,
				"?as_of=yesterday":                    `as_of must be a release number`,
				"?format=xml":                         `format must be one of json, csv, ndjson`,
				"?dialect=excel-fr":                   `dialect requires CSV (the extension .csv or format=csv)`,
			} {
				r := s.get(t, named+query).want(t, 400, want)
				check.Equal(t, r.Header.Get("Cache-Control"), "no-store", "%s: Cache-Control", query)
			}
			s.get(t, named+".csv?format=json").want(t, 400, "format must be csv")
			s.get(t, "/q/%ff").want(t, 400, "invalid UTF-8")
			got := s.send(t, http.MethodPost, named, `{}`)
			check.Equal(t, got.StatusCode, 405, "POST")
			check.Equal(t, got.Header.Get("Allow"), "GET, HEAD", "POST")
		})

		t.Run("caching", func(t *testing.T) {
			first, again := s.get(t, named+".json?limit=7"), s.get(t, named+".json?unknown=1&limit=7")
			check.Equal(t, first.Header.Get("Cache-Status"), "palmares; fwd=miss", "%v and %v", first.Header, again.Header)
			check.Equal(t, again.Header.Get("Cache-Status"), "palmares; hit", "%v and %v", first.Header, again.Header)
			check.Equal(t, first.Header.Get("Etag"), again.Header.Get("Etag"), "%v and %v", first.Header, again.Header)
			stats := s.get(t, "/api/v1/stats")
			if got := first.Header.Get("Cache-Control"); got != "s-maxage=60, stale-while-revalidate=60" { // its owner may make it private
				t.Errorf("got Cache-Control %q, want a minute in shared caches", got)
			}
			for _, name := range []string{"X-Service-Release", "X-Service-Updated-At", "Access-Control-Allow-Origin", "X-Content-Type-Options"} {
				check.Equal(t, first.Header.Get(name), stats.Header.Get(name))
				check.True(t, first.Header.Get(name) != "", "%s: got %q, want %q as in the REST API", name, first.Header.Get(name), stats.Header.Get(name))
			}
			s.get(t, named+".json?limit=7", "If-None-Match", first.Header.Get("Etag")).want(t, 304, "")
			head := s.send(t, http.MethodHead, named+".json?limit=7", "")
			check.Equal(t, head.StatusCode, 200, "HEAD: %v", head.Header)
			check.Equal(t, head.Header.Get("Etag"), first.Header.Get("Etag"), "HEAD: %v", head.Header)
			check.Equal(t, head.ContentLength, first.ContentLength, "HEAD: %v", head.Header)
			check.Equal(t, s.send(t, http.MethodOptions, named, "", "Origin", "https://x.example", "Access-Control-Request-Method", "GET").StatusCode, 204, "preflight")
		})

		t.Run("as_of", func(t *testing.T) {
			pinned := s.get(t, named+".csv?limit=3&as_of=1").want(t, 200, "slug,")
			// Not forever: the name may get another text, and the query may become private.
			check.Equal(t, pinned.Header.Get("Cache-Control"), "s-maxage=60, stale-while-revalidate=60", pinned.Header)
			check.Equal(t, pinned.Header.Get("X-Service-Release"), "1", pinned.Header)
			check.True(t, pinned.Header.Get("Memento-Datetime") != "", "got %v, want the headers of release 1", pinned.Header)
			check.Equal(t, pinned.Header.Get("Link"), "<"+servertest.URL+named+`.csv?limit=3>; rel="original"`, pinned.Header)
			keyed := s.get(t, named+".csv?limit=3&as_of=1", s.as(bea)...)
			check.Equal(t, keyed.Header.Get("Cdn-Cache-Control"), "private, no-store", "a key: %v", keyed.Header)
			day := s.get(t, named+"?as_of=2026-11-10&limit=3").want(t, 200, "[")
			if want := servertest.URL + named + ".json?limit=3&as_of="; !strings.HasPrefix(day.Header.Get("Content-Location"), want) {
				t.Errorf("got Content-Location %q, want %s…", day.Header.Get("Content-Location"), want)
			}
			s.get(t, named+"?as_of=999").want(t, 404, "Release 999 is not available")
		})

		t.Run("versions", func(t *testing.T) {
			before := s.get(t, named).body
			changed := strings.Replace(best, "name\n", "", 1)
			_, next := s.save(t, ana, "best", changed)
			check.True(t, next != permanent, "got the hash %s for another text, want a new one", next)
			wait.Until(t, "the changed query", func() bool { return !strings.Contains(s.get(t, named).body, `"name"`) })
			s.get(t, next).want(t, 200, `[{"slug":`)
			check.Equal(t, s.get(t, permanent).body, before, "at the old hash")
			check.OK(t, s.other.Delete(t.Context(), s.owner(t, ana), "best"))
			wait.Until(t, "the deleted query", func() bool { return s.get(t, named).StatusCode == 404 })
			for _, path := range []string{permanent, next} {
				s.get(t, path).want(t, 200, `[{"slug":`)
			}
		})
	})
}

// The dashboard for Grafana reads columns that our queries have, with their types.
func TestGrafanaDashboard(t *testing.T) {
	s := onSQLite(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct {
				URL     string
				Columns []struct{ Selector, Type string }
			}
		}
	}
	text := check.Try(os.ReadFile(filepath.Join(repo.Root(t), "deploy", "grafana", "catalog.json"))).OK(t)
	check.OK(t, json.Unmarshal(text, &dashboard))
	check.Equal(t, len(dashboard.Panels), 11)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			path := strings.NewReplacer("${base}", "", "${token}", "").Replace(target.URL)
			want := tableOf(t, s.get(t, path).want(t, 200, "").body)
			check.Must(t, len(target.Columns), len(want.Columns), panel.Title)
			for i, c := range target.Columns {
				check.Equal[any](t, c.Selector, want.Columns[i][0], panel.Title)
				check.Equal(t, c.Type == "number" && want.Columns[i][1] != true, false, panel.Title+": numbers in "+c.Selector)
			}
		}
	}
}

// The panels of the dashboard are public queries of the service.
func TestPanels(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		response := s.get(t, "/q/palmares/openapi.json").want(t, 200, `"/q/palmares/score-movers"`)
		doc := check.Try(openapi3.NewLoader().LoadFromData([]byte(response.body))).OK(t)
		check.OK(t, doc.Validate(t.Context()))
		schema := doc.Paths.Value("/q/palmares/monthly-prices.csv").Get.Responses.Value("200").Value.Content["text/csv"].Schema.Value
		text, _ := json.Marshal(schema.Extensions["x-table-schema"])
		check.Contains(t, string(text), `"name":"key","type":"string"}`)
		panels := 0
		for path, item := range doc.Paths.Map() {
			r := s.get(t, path).want(t, 200, "")
			content := item.Get.Responses.Value("200").Value.Content
			mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
			check.Equal(t, len(content), 1, "%s: %s", path, mediaType)
			check.True(t, content[mediaType] != nil, "%s: got %s, want the one media type in the document", path, mediaType)
			if mediaType != "application/json" {
				continue
			}
			panels++
			var body any
			check.OK(t, json.Unmarshal([]byte(r.body), &body))
			schema := content[mediaType].Schema.Value
			check.Equal(t, schema.VisitJSON(body), nil, path)
		}
		check.Equal(t, panels, 15, "panels")
	})
}

// mixed has every kind of parameter and field that a document describes.
const mixed = `query Mixed(
  $limit: Int! = 2, $score: Float, $icps: [Icp!], $sort: ToolSort = name_asc, $since: Date, $on: Boolean = true
) {
  tools(limit: $limit, sort: $sort, filter: {scoreMin: $score, icps: $icps, updatedSince: $since}) {
    items { slug score icp billingPeriod category { label } priceHistory { changedAt direction } comparisons { slug } }
    meta @include(if: $on) { total }
  }
  embeddings(slug: "plume") { chunks { text metadata { score } } }
  node(id: "tool/plume") { id ... on Tool { name verdict } ... on Category { label } }
  changes(first: 3) { events }
}
`

// Generators of clients and documentation accept the documents of saved queries.
func TestDocumentsWithNodeLinters(t *testing.T) {
	packages := filepath.Join(repo.Root(t), "rest", "testdata", "node")
	testkit.NPM(t, packages)
	s := onSQLite(t)
	s.save(t, ana, "mixed", mixed, func(q *saved.NewQuery) { q.Description = "Everything" })
	s.save(t, ana, "best", best)
	s.save(t, bea, "secret", best, private) // the document has no paths
	for _, handle := range []string{"palmares", "ana", "bea"} {
		document := s.get(t, "/q/"+handle+"/openapi.json").want(t, 200, `"openapi"`).body
		file := filepath.Join(t.TempDir(), handle+".json")
		check.OK(t, os.WriteFile(file, []byte(document), 0o600))
		for _, c := range []struct {
			want string
			args []string
		}{
			{"Your API description is valid", []string{"redocly", "lint", "--config", "redocly.yaml", file}},
			{"No results", []string{"spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", file}},
		} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(packages, "node_modules", ".bin", c.args[0]), c.args[1:]...)
			cmd.Dir = packages
			cmd.Env = append(os.Environ(),
				"REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "SCARF_ANALYTICS=false")
			out, err := cmd.CombinedOutput()
			check.True(t, err == nil && strings.Contains(string(out), c.want) && !strings.Contains(string(out), "warning"),
				"%s of %s: got %v and %s, want no warnings", c.args[0], handle, err, out)
		}
	}
}

// A description with HTML is shown as plain text everywhere.
func TestDescriptions(t *testing.T) {
	s := onSQLite(t)
	s.save(t, ana, "best", best, func(q *saved.NewQuery) { q.Description = `<script>alert(1)</script>` })
	r := s.get(t, "/q/ana/openapi.json").want(t, 200, "&lt;script&gt;")
	check.Lacks(t, r.body, "<script")
	check.Equal(t, r.Header.Get("X-Content-Type-Options"), "nosniff", r.Header)
	check.Equal(t, r.Header.Get("Content-Type"), "application/json", r.Header)
	for _, path := range []string{"/q/", "/q/ana", "/q/ana/", "/q/ana/best/", "/q//best", "/q/Ana/best", "/q/ana/Best", "/q/ana/be%73t/x", "/q/ana/..%2fbest", "/q/x/openapi.json"} {
		s.get(t, path).want(t, 404, `{"error":"There is no saved query at this URL`)
	}
	for _, format := range []string{"xlsx", "json.csv"} {
		s.get(t, "/q/ana/best."+format).want(t, 404, `"There is no format \"`+format+`\". Saved queries have json, csv, ndjson and`)
	}
}

// table is what a program has read from a CSV file.
type table struct {
	Rows    int
	Columns [][2]any // name, and whether it has numbers
}

// LibreOffice, pandas and DuckDB read every query of the service with the same rows
// and columns, and numbers as numbers.
func TestOwnQueriesWithLibreOfficePandasAndDuckDB(t *testing.T) {
	s := onSQLite(t)
	dir := t.TempDir()
	var files []string
	var want []table
	for _, path := range s.ownQueries(t) {
		body := s.get(t, path+".csv").want(t, 200, "").body
		file := filepath.Join(dir, filepath.Base(path)+".csv")
		check.OK(t, os.WriteFile(file, []byte(body), 0o600))
		files, want = append(files, file), append(want, tableOf(t, body))
	}
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = "testdata"
		out, err := cmd.Output()
		check.OK(t, err, "%s %s", program, string(out))
		return string(out)
	}
	testkit.NPM(t, "testdata")
	for name, out := range map[string]string{
		"pandas": run(testkit.Pandas.Ensure(t), append([]string{"pandas_columns.py"}, files...)...),
		"DuckDB": run(testkit.Node.Ensure(t), append([]string{"duckdb.mjs"}, files...)...),
	} {
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var got table
			check.OK(t, json.Unmarshal([]byte(line), &got))
			if got.Rows != want[i].Rows || !slices.Equal(got.Columns, want[i].Columns) {
				t.Errorf("%s, %s: got %+v, want %+v", name, filepath.Base(files[i]), got, want[i])
			}
		}
	}

	// The options are separator, quote and UTF-8.
	converted := filepath.Join(dir, "converted")
	run(testkit.LibreOffice.Ensure(t), append([]string{"-env:UserInstallation=file://" + filepath.Join(dir, "profile"),
		"--headless", "--infilter=CSV:44,34,76,1,,1033,false,false", "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76", "--outdir", converted}, files...)...)
	for i, file := range files {
		text := check.Try(os.ReadFile(filepath.Join(converted, filepath.Base(file)))).OK(t)
		if got := tableOf(t, string(text)); got.Rows != want[i].Rows || !slices.Equal(got.Columns, want[i].Columns) {
			t.Errorf("LibreOffice, %s: got %+v, want %+v", filepath.Base(file), got, want[i])
		}
	}
}

// tableOf returns the rows and columns of a CSV file. A column has numbers if all of
// its values are.
func tableOf(t *testing.T, text string) table {
	t.Helper()
	rows := check.Try(csv.NewReader(strings.NewReader(text)).ReadAll()).OK(t)
	found := table{Rows: len(rows) - 1}
	for i, name := range rows[0] {
		numbers := true
		for _, row := range rows[1:] {
			if _, err := strconv.ParseFloat(row[i], 64); row[i] != "" && err != nil {
				numbers = false
			}
		}
		found.Columns = append(found.Columns, [2]any{name, numbers})
	}
	return found
}

// ownQueries returns the paths of the queries of the service, each of which must have a
// CSV.
func (s *service) ownQueries(t *testing.T) (paths []string) {
	t.Helper()
	var document struct{ Paths map[string]any }
	check.OK(t, json.Unmarshal([]byte(s.get(t, "/q/palmares/openapi.json").body), &document))
	for path := range document.Paths {
		if strings.Contains(path, ".") {
			continue
		}
		_, hasTable := document.Paths[path+".csv"]
		check.True(t, hasTable, "%s: got no CSV in the OpenAPI document, want one", path)
		paths = append(paths, path)
	}
	check.MustTrue(t, len(paths) >= 15, "got %d queries, want at least 15", len(paths))
	return paths
}
