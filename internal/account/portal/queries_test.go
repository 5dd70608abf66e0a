package portal

import (
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestQueries(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana := s.signIn("ana@example.com")
		const text = "query Tools($limit: Int! = 3) { tools(limit: $limit) { items { name } } }"
		if page := ana.get("/account/queries"); !strings.Contains(page.text, "You have no saved queries yet") {
			t.Errorf("got page %s, want no queries", page.text)
		}
		if page := ana.post("/account/queries/new", "query", text+"<b>"); page.Code != 200 || !strings.Contains(page.Body.String(), "&lt;b&gt;") {
			t.Errorf("form from the explorer: got status %d %s, want the query in it", page.Code, page.text)
		}
		for _, wrong := range [][]string{
			{"name", "Best", "handle", "ana", "query", text}, {"name", "best", "query", text}, {"name", "best", "handle", "admin", "query", text},
			{"name", "best", "handle", "ana", "query", "{ nothing }"}, {"name", "best", "handle", "ana", "query", "subscription { catalogPublished { release } }"},
		} {
			if page := ana.post("/account/queries", wrong...); page.Code != 400 || !strings.Contains(page.text, `role="alert"`) || !strings.Contains(page.text, "<textarea") {
				t.Errorf("%v: got status %d %s, want 400 and the form", wrong, page.Code, page.text)
			}
		}
		if page := ana.post("/account/queries", "name", "best", "handle", "ana", "query", text, "description", "<script>x</script>"); page.Code != 303 {
			t.Fatalf("saving: got status %d %s, want 303", page.Code, page.text)
		}
		if page := ana.get("/account/queries/best"); !strings.Contains(page.text, "https://palmares.example/q/ana/best") || strings.Contains(page.Body.String(), "<script>x") {
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
			if page := ben.get("/account/queries/best" + action); page.Code != 404 {
				t.Errorf("another account's query%s: got status %d, want 404", action, page.Code)
			}
		}
		for _, action := range []string{"/token", "/revoke-token", "/delete"} {
			if page := ben.post("/account/queries/best" + action); page.Code != 404 {
				t.Errorf("another account's query%s: got status %d, want 404", action, page.Code)
			}
		}
		if page := ben.post("/account/queries", "name", "best", "handle", "ana", "query", text); page.Code != 400 || !strings.Contains(page.text, "taken") {
			t.Errorf("handle of another account: got status %d %s, want 400", page.Code, page.text)
		}
		if page := ana.post("/account/queries", "name", "long", "query", strings.Repeat("#", 400_000)); page.Code != 413 {
			t.Errorf("long form: got status %d, want 413", page.Code)
		}
		ana.post("/account/queries/best/revoke-token")
		if page := ana.get("/account/queries/best/delete"); !strings.Contains(page.text, "Delete best?") {
			t.Errorf("got page %s, want a question first", page.text)
		}
		if page := ana.post("/account/queries/best/delete"); page.Code != 303 || ana.get("/account/queries/best").Code != 404 {
			t.Errorf("deleting: got status %d, want 303 and no query", page.Code)
		}
		// The versions of a deleted query still have permanent URLs.
		wantPage(t, ana.get("/account/delete"), 200, "including the permanent ones")
		wantNoText(t, ben.get("/account/delete"), "saved queries")
	})
}
