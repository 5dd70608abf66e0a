package saved

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

const names = `{tools(limit: 2) {items {slug name}}}`

func newQueries(t testing.TB, s *store.Store, builtIn ...BuiltIn) (*Queries, *testkit.Log) {
	t.Helper()
	lines := &testkit.Log{}
	log := slog.New(slog.NewTextHandler(lines, nil))
	memory := cache.New(8<<20, []byte("secret"), log)
	executor := graphtest.New(graph.Config{Catalog: s, Log: log, Cache: memory})
	q := check.Try(New(Config{
		Service: rest.Config{PublicURL: "https://palmares.example", ServiceName: "palmares"},
		Store:   s, Executor: executor, Cache: memory, Log: log, BuiltIn: builtIn,
	})).OK(t)
	return q, lines
}

// onDemoCatalog runs a test on each database with the demo catalog.
func onDemoCatalog(t *testing.T, test func(t *testing.T, s *store.Store, q *Queries)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})).OK(t)
		q, _ := newQueries(t, s)
		test(t, s, q)
	})
}

var accounts atomic.Int64

func newAccount(t testing.TB, s *store.Store, plan auth.Plan) *ent.Account {
	t.Helper()
	return check.Try(auth.NewAccounts(s).Create(t.Context(), fmt.Sprintf("a%d@example.com", accounts.Add(1)), plan)).OK(t)
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A query is executed only after everything else is checked and the execution is
// counted, one at a time for each account.
func TestSaveCountsExecutions(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner, counted := newAccount(t, s, auth.Developer), 0
		count := func() error { counted++; return nil }
		save := func(name, handle string, count func() error) error {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: name, Handle: handle, Text: names, Count: count})
			return err
		}
		for handle, want := range map[string]string{"": "no handle yet", "admin": "reserved"} {
			check.Contains(t, messageOf(save("x", handle, count)), want, "handle %q", handle)
			check.Equal(t, counted, 0, "handle %q", handle)
		}
		spent := problem.New(problem.QuotaSpent, "used up")
		check.Is(t, save("x", "ana", func() error { return spent }), spent, "without quota")
		list := check.Try(q.List(t.Context(), owner)).OK(t, "without quota")
		check.Equal(t, len(list), 0, "without quota")
		check.OK(t, save("x", "ana", func() error {
			check.Equal(t, problem.Of(save("y", "", count)).Code, problem.TooMany, "at the same time")
			return count()
		}))
		for i := range auth.Developer.Terms().SavedQueries - 1 {
			check.OK(t, save(fmt.Sprint("q", i), "", count))
		}
		before := counted
		check.Equal(t, problem.Of(save("more", "", count)).Code, problem.Forbidden, "above the plan")
		check.Equal(t, counted, before, "above the plan")
		check.Equal(t, before, auth.Developer.Terms().SavedQueries, "above the plan")
	})
}

// Nobody can take over the URLs of a deleted account.
func TestHandlesAreNeverReused(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		for range 2 {
			owner := newAccount(t, s, auth.Developer)
			check.Try(q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: fmt.Sprint("ana", owner.ID), Text: names})).OK(t)
			check.OK(t, auth.NewAccounts(s).Delete(t.Context(), owner))
			_, err := q.Save(t.Context(), newAccount(t, s, auth.Developer), NewQuery{Name: "x", Handle: fmt.Sprint("ana", owner.ID), Text: names})
			check.Contains(t, messageOf(err), "is taken", err)
		}
	})
}

func TestSaveRejects(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		for name, want := range map[string]string{
			"": "The name must have", "Best": "The name must have", "bést": "The name must have", "bеst": "The name must have", // Cyrillic
			"-a": "The name must have", "a-": "The name must have", "a.json": "The name must have", "a/b": "The name must have",
			strings.Repeat("a", 65): "The name must have", "openapi": "reserved", hashOf("x"): "looks like a hash", "0123456789abcdef": "looks like a hash",
		} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: name, Handle: "ana", Text: names})
			check.Contains(t, messageOf(err), want, "name %q", name)
		}
		for handle, want := range map[string]string{
			"": "no handle yet", "Ana": "The handle must have", "аna": "The handle must have", "a": "The handle must have", "1a": "The handle must have",
			"palmares": "reserved", "palmares-team": "reserved", "xn--palmars-fya": "reserved", "fr": "reserved", "compare": "reserved", "admin": "reserved", "abcdefabcdefabcdef": "looks like a hash",
		} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: handle, Text: names})
			check.Contains(t, messageOf(err), want, "handle %q", handle)
		}
		for text, want := range map[string]string{
			"":                       "The document has no operation",
			"{":                      "Line 1: ",
			"{tools {items {slag}}}": `Cannot query field "slag"`,
			"subscription {catalogPublished {release}}":                                       "must contain a query (got a subscription)",
			"mutation {tools {items {slug}}}":                                                 "",
			"query A {stats {toolsTotal}} query B {stats {toolsTotal}}":                       "exactly one operation (got 2)",
			"{__schema {types {name}}}":                                                       "must read the catalog",
			"{__typename}":                                                                    "must read the catalog",
			"query($f: ToolFilter) {tools(filter: $f) {items {slug}}}":                        "$f has the type ToolFilter",
			"query($as_of: String!) {tool(slug: $as_of) {slug}}":                              "$as_of is reserved",
			"query($format: String!) {tool(slug: $format) {slug}}":                            "$format is reserved",
			"query($token: String!) {tool(slug: $token) {slug}}":                              "$token is reserved",
			"query($dialect: String!) {tool(slug: $dialect) {slug}}":                          "$dialect is reserved",
			"{" + aliased("changes(fields: [\"price\"], first: 200) {nodes {slug}}", 8) + "}": "which exceeds the limit of 20000",
			"{tools(limit: 201) {items {slug}}}":                                              "limit must be an integer from 1 to 200",
			"{stats {toolsTotal}} #" + strings.Repeat("x", MaxDocument):                       "larger than 100000 bytes",
			"{stats {toolsTotal}} #\xff":                                                      "not valid UTF-8",
		} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: "ana", Text: text})
			p := problem.Of(err)
			check.Fails(t, err, "%.60q", text)
			check.True(t, p.Code.Status() < 500, "%.60q: got %v, want %s", text, err, want)
			check.Contains(t, p.Message, want, "%.60q", text)
		}
		for _, description := range []string{strings.Repeat("x", MaxDescription+1), "a\x00b", "a\x1bb", "\xff"} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: "ana", Text: names, Description: description})
			check.Contains(t, messageOf(err), "The description must have", "description %.20q", description)
		}
		n := check.Try(s.Read.SavedQuery.Query().Count(t.Context())).OK(t)
		check.Equal(t, n, 0)
		row := check.Try(s.Read.Account.Get(t.Context(), owner.ID)).OK(t)
		check.Equal(t, row.Handle, nil)

		first := check.Try(q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: "ana", Text: names})).OK(t)
		check.Equal(t, first.Named, "https://palmares.example/q/ana/x", "want both URLs")
		check.Equal(t, first.Permanent, "https://palmares.example/q/"+hashOf(names), "want both URLs")
		for handle, want := range map[string]string{"bea": `already has the handle "ana"`, "ana": "", "": ""} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: "y", Handle: handle, Text: names})
			check.Contains(t, messageOf(err), want, "handle %q", handle)
			check.True(t, want != "" || err == nil, "handle %q: got %v, want %q", handle, err, want)
		}
		_, err := q.Save(t.Context(), newAccount(t, s, auth.Pro), NewQuery{Name: "x", Handle: "ana", Text: names})
		check.Contains(t, messageOf(err), `"ana" is taken`)
		// A required variable without a default is tried with a value of its type.
		for _, text := range []string{
			"query($slug: String!) {tool(slug: $slug) {slug}}",
			"query($after: String!) {toolConnection(first: 1, after: $after) {nodes {slug}}}",
			"query($by: [RetirementGroupKey!]!) {retirementGroups(by: $by) {reason category count}}",
			"query($from: Date!, $deep: Boolean!) {movers(metric: score, from: $from) {slug} stats @include(if: $deep) {toolsTotal}}",
			"query($slug: String!) {embeddings(slug: $slug) {hash}}",
		} {
			_, err := q.Save(t.Context(), owner, NewQuery{Name: "z", Text: text})
			check.Equal(t, err, nil, text)
		}
	})
}

func aliased(field string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("f%d: %s", i, field))
	}
	return strings.Join(all, " ")
}

// Even with concurrent calls on several servers, an account has no more saved queries
// than its plan includes.
func TestLimitUnderConcurrency(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		for plan, limit := range map[auth.Plan]int{auth.Developer: 5, auth.Pro: 50} {
			owner := newAccount(t, s, plan)
			handle := "at-once-" + string(plan)
			for i := range limit - 5 {
				check.Try(q.Save(t.Context(), owner, NewQuery{Name: fmt.Sprintf("early-%d", i), Handle: handle, Text: names})).OK(t)
			}
			var all sync.WaitGroup
			var saved, refused atomic.Int64
			for i := range 6 {
				server, _ := newQueries(t, s)
				all.Go(func() {
					_, err := server.Save(t.Context(), owner, NewQuery{Name: fmt.Sprintf("q%d", i), Handle: handle, Text: names})
					switch {
					case err == nil:
						saved.Add(1)
					case strings.Contains(err.Error(), fmt.Sprintf("plan includes %d saved queries", limit)):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			list := check.Try(q.List(t.Context(), owner)).OK(t)
			check.Equal(t, saved.Load(), 5, plan)
			check.Equal(t, refused.Load(), 1, plan)
			check.Equal(t, len(list), limit, plan)
			_, err := q.Save(t.Context(), owner, NewQuery{Name: list[0].Name, Text: names + "#"})
			check.Equal(t, err, nil, "changing one at the limit")
		}
	})
}

// A downgrade suspends the newest, and an upgrade resumes them.
func TestSuspension(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		for i := range 7 {
			check.Try(q.Save(t.Context(), owner, NewQuery{Name: fmt.Sprintf("q%d", i), Handle: "ana", Text: names, Public: true})).OK(t)
		}
		suspended := func(plan auth.Plan) (names []string) {
			check.OK(t, auth.NewAccounts(s).SetPlan(t.Context(), owner, plan))
			owner = check.Try(s.Read.Account.Get(t.Context(), owner.ID)).OK(t)
			list := check.Try(q.List(t.Context(), owner)).OK(t)
			for _, query := range list {
				if query.Suspended {
					names = append(names, query.Name)
				}
			}
			return names
		}
		public := func() int {
			list, _, err := q.Public(t.Context(), "", 100, 0)
			check.OK(t, err)
			return len(list)
		}
		if got := suspended(auth.Pro); len(got) != 0 || public() != 7 {
			t.Errorf("got %v suspended and %d public, want none and 7", got, public())
		}
		check.Equal(t, fmt.Sprint(suspended(auth.Developer)), "[q5 q6]")
		check.Equal(t, public(), 5)
		check.OK(t, q.Delete(t.Context(), owner, "q0"))
		check.Equal(t, fmt.Sprint(suspended(auth.Developer)), "[q6]", "suspended")
		check.Equal(t, len(suspended(auth.Pro)), 0, "suspended")
	})
}

// An account cannot fill the database with texts, because these are not deleted.
func TestVersionsPerDay(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Developer)
		text := func(i int) string { return fmt.Sprintf("%s #%d", names, i) }
		for i := range maxVersionsPerDay {
			check.Try(q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: "ana", Text: text(i)})).OK(t)
		}
		_, err := q.Save(t.Context(), owner, NewQuery{Name: "x", Text: text(-1)})
		check.Contains(t, messageOf(err), "at most 100 different query texts")
		_, err = q.Save(t.Context(), owner, NewQuery{Name: "x", Text: text(0)})
		check.Equal(t, err, nil, "an earlier text")
	})
}

// Deleting an account deletes its queries with all their versions.
func TestDeletedAccount(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner, other := newAccount(t, s, auth.Developer), newAccount(t, s, auth.Developer)
		for handle, account := range map[string]*ent.Account{"ana": owner, "bea": other} {
			check.Try(q.Save(t.Context(), account, NewQuery{Name: "x", Handle: handle, Text: names, Public: true})).OK(t)
		}
		check.OK(t, auth.NewAccounts(s).Delete(t.Context(), owner))
		queries := check.Try(s.Read.SavedQuery.Query().Count(t.Context())).OK(t)
		versions := check.Try(s.Read.QueryVersion.Query().Count(t.Context())).OK(t)
		check.Equal(t, queries, 1, "want only those of the other account")
		check.Equal(t, versions, 1, "want only those of the other account")
	})
}

// breakQuery replaces a saved text with one that an earlier schema allowed.
func breakQuery(t testing.TB, s *store.Store, row *ent.SavedQuery) string {
	t.Helper()
	const text = "{tools {items {oldField}}}"
	check.OK(t, s.Write.QueryVersion.Create().SetHash(hashOf(text)).SetAccountID(row.AccountID).SetText(text).SetPublic(row.Public).Exec(t.Context()))
	check.OK(t, s.Write.SavedQuery.UpdateOneID(row.ID).SetHash(hashOf(text)).Exec(t.Context()))
	return text
}

// The owner of a query that is no longer valid gets one email, whatever the
// number of servers and restarts, and another if it happens again.
func TestBrokenQueries(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		q, _ := newQueries(t, s)
		owner := newAccount(t, s, auth.Developer)
		check.Try(q.Save(t.Context(), owner, NewQuery{Name: "valid", Handle: "ana", Text: names})).OK(t)
		query := check.Try(q.Save(t.Context(), owner, NewQuery{Name: "old", Text: names + "#", Public: true})).OK(t)
		hash := hashOf(breakQuery(t, s, query.SavedQuery))
		for path, status := range map[string]int{"/q/ana/old": 410, "/q/ana/old.csv": 410, "/q/" + hash: 410, "/q/ana/valid": 404} { // which is private
			w := httptest.NewRecorder()
			q.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			check.Equal(t, w.Code, status, path)
			check.Equal(t, strings.Contains(w.Body.String(), "oldField"), status == 410, path)
		}
		var found []string
		rows := func() []string {
			found = nil
			check.OK(t, q.Check(t.Context(), func(row *ent.SavedQuery, reason error) error {
				found = append(found, row.Edges.Account.Email+" "+row.Name+" "+reason.Error())
				return nil
			}))
			return found
		}
		got := rows()
		check.Must(t, len(got), 1, got)
		check.Contains(t, got[0], owner.Email+" old Line 1: Cannot query field \"oldField\"")
		var servers sync.WaitGroup
		for range 3 {
			servers.Go(func() { q.Run(t.Context()) })
		}
		servers.Wait()
		q.Run(t.Context())
		n := s.Read.Notice.Query().AllX(t.Context())
		check.Must(t, len(n), 1, "emails %v", n)
		check.Equal(t, n[0].Recipient, owner.Email)
		check.Contains(t, n[0].Text, "oldField")
		for _, broken := range []error{nil, errors.New("oldField")} { // in the next versions of the program
			row := s.Read.SavedQuery.Query().Where(savedquery.Name("old")).WithAccount().OnlyX(t.Context())
			check.OK(t, q.recordBroken(t.Context(), row, broken))
			got := s.Read.Notice.Query().CountX(t.Context())
			check.Equal(t, got > 0, broken != nil, "broken %v: %d emails", broken, got)
		}
		query = check.Try(q.Find(t.Context(), owner, "old")).OK(t)
		check.Contains(t, query.BrokenReason, "oldField", "reason")
		query = check.Try(q.Save(t.Context(), owner, NewQuery{Name: "old", Text: names})).OK(t)
		check.Equal(t, query.BrokenReason, "", "%v or an email", found)
		check.Equal(t, len(rows()), 0, "%v or an email", found)
		check.Equal(t, s.Read.Notice.Query().CountX(t.Context()), 0, "%v or an email", found)
	})
}

// A connected application reads private queries only if its user allowed it.
func TestApplicationsReadPrivateQueries(t *testing.T) {
	private := &record{state: state{account: 1}, broken: fmt.Errorf("read")}
	for caller, want := range map[auth.Caller]bool{
		{Account: 1}: true, {Account: 1, Application: "app_x"}: false, {Account: 1, Application: "app_x", PrivateQueries: true}: true,
		{Account: 2, Application: "app_y", PrivateQueries: true}: false, {}: false,
	} {
		check.Equal(t, problem.Of(private.check(caller, false)).Code != problem.NotFound, want, "%+v", caller)
	}
}

// A command loads the catalog before it tries a query, without the time limit of requests.
func TestSaveLoadsWithoutDeadline(t *testing.T) {
	cfg, limited, unlimited := testkit.SQLite(t), 0, 0
	cfg.OnStatement = func(ctx context.Context, _, statement string) func(error) {
		if strings.Contains(statement, "FROM `tools`") {
			if _, has := ctx.Deadline(); has {
				limited++
			} else {
				unlimited++
			}
		}
		return func(error) {}
	}
	s := testkit.Open(t, cfg)
	check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})).OK(t)
	limited, unlimited = 0, 0
	q, _ := newQueries(t, s)
	check.Try(q.Save(t.Context(), newAccount(t, s, auth.Pro), NewQuery{Name: "a", Handle: "ana", Text: "{ tools { items { name } } }"})).OK(t)
	check.True(t, limited <= 0 && unlimited != 0, "got %d statements with a deadline and %d without, want only those without", limited, unlimited)
}

// 10,000 saved queries take no memory until they are used.
func TestUnusedQueriesTakeNoMemory(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		check.Try(q.Save(t.Context(), owner, NewQuery{Name: "x", Handle: "ana", Text: names})).OK(t)
		var rows []*ent.SavedQueryCreate
		var versions []*ent.QueryVersionCreate
		for i := range 10_000 {
			text := fmt.Sprintf("%s #%d", names, i)
			rows = append(rows, s.Write.SavedQuery.Create().SetAccountID(owner.ID).SetName(fmt.Sprint("q", i)).SetHash(hashOf(text)).SetPublic(true))
			versions = append(versions, s.Write.QueryVersion.Create().SetHash(hashOf(text)).SetAccountID(owner.ID).SetText(text).SetPublic(true))
			if len(rows) == 500 {
				check.OK(t, s.Write.SavedQuery.CreateBulk(rows...).Exec(t.Context()))
				check.OK(t, s.Write.QueryVersion.CreateBulk(versions...).Exec(t.Context()))
				rows, versions = nil, nil
			}
		}
		fresh, _ := newQueries(t, s)
		before := fresh.Cache.Entries()
		fresh.Run(t.Context())
		check.Equal(t, fresh.Cache.Entries(), before, "cached items after checking all")
		n, err := s.Read.SavedQuery.Query().Where(savedquery.BrokenReasonNEQ("")).Count(t.Context())
		check.Equal(t, n, 0)
		check.Equal(t, err, nil)
	})
}
