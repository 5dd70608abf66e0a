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
		for _, wrong := range [][]string{
			{"name", "Best", "handle", "ana", "query", text}, {"name", "best", "query", text}, {"name", "best", "handle", "admin", "query", text},
			{"name", "best", "handle", "ana", "query", "{ nothing }"}, {"name", "best", "handle", "ana", "query", "subscription { catalogPublished { release } }"},
			{"name", "best", "handle", "ana", "query", text, "chart", "bar", "x", "name", "y", "score"}, {"name", "best", "handle", "ana", "query", text, "title", strings.Repeat("x", 101)},
		} {
			if page := ana.post("/account/queries", wrong...); page.Code != 400 || !strings.Contains(page.text, `role="alert"`) || !strings.Contains(page.text, "<textarea") {
				t.Errorf("%v: got status %d %s, want 400 and the form", wrong, page.Code, page.text)
			}
		}
		if page := ana.post("/account/queries", "name", "best", "handle", "ana", "query", text, "variables", `{"limit": 2}`, "title", "<script>x</script>", "description", "<script>x</script>"); page.Code != 303 || !strings.HasSuffix(page.Header().Get("Location"), "&with=limit%3D2") {
			t.Fatalf("saving: got status %d %s, want 303", page.Code, page.text)
		}
		if page := ana.get("/account/queries/best?done=querysaved&with=limit%3D2"); !strings.Contains(page.text, `href="https://palmares.example/q/ana/best?limit=2"`) || !strings.Contains(page.text, "<code>.csv</code>") || strings.Contains(page.Body.String(), "<script>x") {
			t.Errorf("got page %s, want the address and an escaped description", page.text)
		}
		if page := ana.get("/account/queries/best/edit"); !strings.Contains(page.text, "items { name }") || strings.Contains(page.text, `name="handle"`) {
			t.Errorf("got form %s, want the text, and no other handle", page.text)
		}
		token := ana.post("/account/queries/best/token")
		if token.Code != 200 || !strings.Contains(token.text, "?token=qt_") || strings.Contains(ana.get("/account/queries/best").text, "qt_") {
			t.Errorf("got status %d %s, want the token once", token.Code, token.text)
		}
		ben := s.signIn("ben@example.com")
		for _, action := range []string{"", "/edit", "/delete"} {
			check.Equal(t, ben.get("/account/queries/best"+action).Code, 404, "another account's query%s: status", action)
		}
		for _, action := range []string{"/token", "/revoke-token", "/delete"} {
			check.Equal(t, ben.post("/account/queries/best"+action).Code, 404, "another account's query%s: status", action)
		}
		if page := ben.post("/account/queries", "name", "best", "handle", "ana", "query", text); page.Code != 400 || !strings.Contains(page.text, "taken") {
			t.Errorf("handle of another account: got status %d %s, want 400", page.Code, page.text)
		}
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
		if page := ana.post("/account/queries/best/delete"); page.Code != 303 || ana.get("/account/queries/best").Code != 404 {
			t.Errorf("deleting: got status %d, want 303 and no query", page.Code)
		}
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
	if body.read > 0 {
		t.Errorf("got %d bytes of the form read, want none", body.read)
	}
	login := visitor.get(draftPath + "?draft=1")
	wantRedirect(t, login, "/login")
	if to, err := url.Parse(login.to()); err != nil || to.Query().Get("next") != "/fr"+draftPath+"?draft=1" {
		t.Errorf("got %s, want to return to the form", login.to())
	}
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
