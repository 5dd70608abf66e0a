package portal

import (
	"io"
	"strings"
	"testing"
)

func TestFormsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	for name, c := range map[string]struct {
		body   io.Reader
		status int
		says   string
	}{
		"large":      {strings.NewReader("name=" + strings.Repeat("x", 20<<10)), 413, "larger than"},
		"broken":     {strings.NewReader("name=%zz"), 400, "cannot be read"},
		"semicolons": {strings.NewReader("name=a;b=c"), 400, "cannot be read"},
		"not UTF-8":  {strings.NewReader("name=%ff%fe"), 400, "one line"},
		"many lines": {strings.NewReader("name=a%0Ab"), 400, "one line"},
		"long":       {strings.NewReader("name=" + strings.Repeat("n", 81)), 400, "80 characters"},
		"a nul":      {strings.NewReader("name=%00"), 400, "one line"},
	} {
		t.Run(name, func(t *testing.T) { wantPage(t, b.send("POST", "/account/keys", c.body), c.status, c.says) })
	}
	if n := s.db.Write.APIKey.Query().CountX(t.Context()); n != 0 {
		t.Errorf("%d keys", n)
	}
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	key := idOf(t, b.makeKey("laptop"))
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/login", "/logout", "/account", "/account/keys", "/account/keys/" + key + "/revoke", "/account/delete", "/account/logout-everywhere"} {
			got := b.send(method, path, strings.NewReader("email=ana@example.com"))
			if got.Code != 405 && got.Code != 404 {
				t.Errorf("%s %s: %d", method, path, got.Code)
			}
			wantGuarded(t, method+" "+path, got)
		}
	}
	for _, path := range []string{"/logout", "/account/delete/", "/account/logout-everywhere", "/account/keys", "/account/nothing", "/login/nothing"} {
		if got := b.get(path); got.Code != 405 && got.Code != 404 {
			t.Errorf("GET %s: %d", path, got.Code)
		}
	}
	for path, to := range map[string]string{"/account/": "/account", "/login/?next=%2Faccount": "/login?next=%2Faccount"} {
		if got := b.get(path); got.Code != 303 || got.Header().Get("Location") != to {
			t.Errorf("GET %s: %d to %s", path, got.Code, got.Header().Get("Location"))
		}
	}
	if !b.isSignedIn() || s.db.Write.APIKey.GetX(t.Context(), key).RevokedAt != nil {
		t.Error("something was done")
	}
}
