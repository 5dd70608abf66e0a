package portal

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestQueries(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana := s.signIn("ana@example.com")
		const text = "query Tools($limit: Int! = 3) { tools(limit: $limit) { items { name } } }"
		check.Contains(t, ana.get("/account/queries").text, "You have no saved queries yet", "page")
		opened := ana.post("/account/queries/new", "query", text+"#<b>", "variables", `{"limit": 2}`)
		for _, want := range []string{"#&lt;b&gt;", `name="title" value="Tools"`, `name="name" value="tools"`, "limit&#34;: 2}", "<option>name</option>"} {
			check.Equal(t, opened.Code, 200, "form from the explorer: %s", opened.text)
			check.Contains(t, opened.Body.String(), want, "form from the explorer: %s", opened.text)
		}
		for _, wrong := range [][]string{ // the field, and what is typed
			{"name", "name", "Best", "handle", "ana", "query", text}, {"handle", "name", "best", "query", text}, {"handle", "name", "best", "handle", "admin", "query", text},
			{"query", "name", "best", "handle", "ana", "query", "{ nothing }"}, {"query", "name", "best", "handle", "ana", "query", "subscription { catalogPublished { release } }"},
			{"y", "name", "best", "handle", "ana", "query", text, "chart", "bar", "x", "name", "y", "score"}, {"title", "name", "best", "handle", "ana", "query", text, "title", strings.Repeat("x", 101)},
		} {
			page := ana.post("/account/queries", wrong[1:]...)
			check.Equal(t, page.Code, 400, wrong)
			check.Contains(t, page.text, `role="alert"`, wrong)
			check.Equal(t, invalidField(page), wrong[0], wrong)
		}
		page := ana.post("/account/queries", "name", "best", "handle", "ana", "query", text, "variables", `{"limit": 2}`, "title", "<script>x</script>", "description", "<script>x</script>")
		check.Must(t, page.Code, 303, "saving: %s", page.text)
		check.MustTrue(t, strings.HasSuffix(page.Header().Get("Location"), "&with=limit%3D2"), "saving: got status %d %s, want 303", page.Code, page.text)
		page = ana.get("/account/queries/best?done=querysaved&with=limit%3D2")
		check.Contains(t, page.text, `href="https://palmares.example/q/ana/best?limit=2"`)
		check.Contains(t, page.text, "<code>.csv</code>")
		check.Lacks(t, page.Body.String(), "<script>x")
		page = ana.get("/account/queries/best/edit")
		check.Contains(t, page.text, "items { name }")
		check.Lacks(t, page.text, `name="handle"`)
		token := ana.post("/account/queries/best/token")
		check.Equal(t, token.Code, 200)
		check.Contains(t, token.text, "?token=qt_")
		check.Lacks(t, ana.get("/account/queries/best").text, "qt_")
		ben := s.signIn("ben@example.com")
		for _, action := range []string{"", "/edit", "/delete"} {
			check.Equal(t, ben.get("/account/queries/best"+action).Code, 404, "another account's query%s: status", action)
		}
		for _, action := range []string{"/token", "/revoke-token", "/delete"} {
			check.Equal(t, ben.post("/account/queries/best"+action).Code, 404, "another account's query%s: status", action)
		}
		check.Contains(t, ana.get("/account/queries").text, "saved queries, handle ana<", "page with a query")
		page = ben.post("/account/queries", "name", "best", "handle", "ana", "query", text)
		check.Equal(t, page.Code, 400, "handle of another account")
		check.Contains(t, page.text, "taken", "handle of another account")
		check.Equal(t, ana.post("/account/queries", "name", "long", "query", strings.Repeat("#", 400_000)).Code, 413, "long form: status")
		// A chart whose columns an edited query no longer has is chosen again.
		drawn := []string{"name", "drawn", "chart", "bar", "x", "name", "y", "score", "query"}
		wantRedirect(t, ana.post("/account/queries", append(drawn, "{ tools { items { name score } } }")...), "/account/queries/drawn")
		wantRedirect(t, ana.post("/account/queries", append(drawn, "{ tools { items { name obsolescence } } }", "edits", "drawn")...), "/account/queries/drawn")
		// Two lists that have nothing to do with each other have no CSV.
		wantRedirect(t, ana.post("/account/queries", "name", "lists", "query", "{ categories { slug } tools(limit: 1) { items { name } } }"), "/account/queries/lists")
		wantNoText(t, ana.get("/account/queries/lists"), ".csv")
		wantNoText(t, ana.post("/account/queries/lists/token"), ".csv")
		ana.post("/account/queries/best/revoke-token")
		check.Contains(t, ana.get("/account/queries/best/delete").text, "Delete <script>x</script>?", "page")
		page = ana.post("/account/queries/best/delete")
		check.Equal(t, page.Code, 303, "deleting")
		check.Equal(t, ana.get("/account/queries/best").Code, 404, "deleting")
		// The versions of a deleted query still have permanent URLs.
		wantPage(t, ana.get("/account/delete"), 200, "including the permanent ones")
		wantNoText(t, ben.get("/account/delete"), "saved queries")
	})
}

// Nothing of a query is read before its user has signed in: the browser stores it, and the
// form sends it again.
func TestDraftNeedsSession(t *testing.T) {
	s := newSQLiteSite(t)
	visitor := s.browserIn(lang.French)
	body := &countingReader{left: 300_000}
	sent := visitor.send(http.MethodPost, draftPath, body)
	wantPage(t, sent, 401, "Connectez-vous d’abord")
	check.True(t, body.read == 0, "got %d bytes of the form read, want none", body.read)
	login := visitor.get(draftPath + "?draft=1")
	wantRedirect(t, login, "/login")
	to := check.Try(url.Parse(login.to())).OK(t)
	check.Equal(t, to.Query().Get("next"), "/fr"+draftPath+"?draft=1", login.to())
	ana := s.signIn("ana@example.com")
	wantPage(t, ana.get(draftPath+"?draft=1"), 200, "data-draft", `href="/explorer"`)
	wantNoText(t, ana.get(draftPath), "data-draft")
	wantNoText(t, ana.post(draftPath, "query", "{ stats { toolsTotal } }"), "data-draft")
}

// The visitor pays for validating a query, before it is validated.
func TestDraftIsCharged(t *testing.T) {
	charged, refusal := 0, error(nil)
	s := newSQLiteSite(t, func(cfg *Config) {
		cfg.Charge = func(*http.Request) (func(), error) { charged++; return func() {}, refusal }
	})
	ana := s.signIn("ana@example.com")
	wantPage(t, ana.post(draftPath, "query", "{ stats { toolsTotal } }"), 200)
	wantPage(t, ana.post("/account/queries", "query", "{ nothing }"), 400)
	check.Equal(t, charged, 2, "forms charged")
	refusal = problem.New(problem.TooMany, "Pages of your network have used up their computing time.")
	wantPage(t, ana.post(draftPath, "query", "{ stats { toolsTotal } }"), 429)
}

// A preview runs the query once, at the price of a run, and saves nothing.
func TestPreview(t *testing.T) {
	counted, refusal := 0, error(nil)
	s := newSQLiteSite(t, func(cfg *Config) {
		cfg.Count = func(http.ResponseWriter, *http.Request) error { counted++; return refusal }
	})
	feedtest.Publish(t, s.db, demo.Catalog())
	ana := s.signInAt(lang.French, "ana@example.com")
	preview := func(pairs ...string) response {
		return ana.post("/account/queries", append([]string{"preview", "1"}, pairs...)...)
	}
	const text = "query Tools($limit: Int! = 3) { tools(limit: $limit) { items { name score } } }"
	wantPage(t, preview("query", text), 200, "<svg", "Note par outil", `name="name" value="" required`)
	wantPage(t, preview("query", text, "chart", "table", "variables", `{"limit": 2}`), 200, "<caption>2 lignes</caption>")
	check.Equal(t, counted, 2, "runs counted")
	wantPage(t, preview("query", text, "chart", "bar", "x", "name"), 400, "Choisissez")
	wantPage(t, preview("query", "query Tool($slug: String!) { tool(slug: $slug) { name score } }"), 400, "slug")
	wantPage(t, preview("query", "{ nothing }"), 400, "nothing")
	check.Equal(t, counted, 2, "runs counted, with queries that cannot be run")
	refusal = problem.New(problem.TooMany, "The quota is used up.")
	wantPage(t, preview("query", text), 429, "The quota is used up.", "tools(limit: $limit)")
	wantPage(t, ana.get("/account/queries"), 200, "Vous n’avez pas encore")
}

// countingReader counts what is read of a form.
type countingReader struct{ left, read int }

func (r *countingReader) Read(p []byte) (int, error) {
	n := min(len(p), r.left)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range n {
		p[i] = 'a'
	}
	r.left, r.read = r.left-n, r.read+n
	return n, nil
}
