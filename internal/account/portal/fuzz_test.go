package portal

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
)

// FuzzNextPath checks that the page after signing in is one of this site, as Go and browsers
// read the URL.
func FuzzNextPath(f *testing.F) {
	for _, next := range []string{"/account", "/en/account/keys?x=1#y", "//evil.example", "/\\evil.example", "https://evil.example", "/%2f/evil.example", "/\t/evil.example", "javascript:alert(1)", "", "/connect?client_id=a%20b"} {
		f.Add(next)
	}
	base := &url.URL{Scheme: "https", Host: "palmares.example", Path: "/login"}
	f.Fuzz(func(t *testing.T, next string) {
		got := localPath(next)
		if got != next && got != home || localPath(got) != got {
			t.Fatalf("%q: got %q, want it unchanged or home", next, got)
		}
		to, err := base.Parse(got)
		if err != nil || to.Host != base.Host || to.Scheme != base.Scheme {
			t.Errorf("%q: got %v and %v, want this site", next, to, err)
		}
		// Browsers remove tabs and line breaks, and read a backslash as a slash.
		read := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(got)), "\\", "/")
		if !strings.HasPrefix(read, "/") || strings.HasPrefix(read, "//") {
			t.Errorf("%q: got %q, which leads to another site", next, got)
		}
	})
}

// FuzzDraft checks that a query and its variables survive a sign-in, and that any other text
// in the link is no draft or a short one.
func FuzzDraft(f *testing.F) {
	f.Add("{tools {items {slug}}}", `{"n":1}`, "")
	encoded, err := encodeDraft("{feed {release}}", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("", "\x00\xff", encoded)
	f.Add(strings.Repeat("a", 10_000), "", encoded[:len(encoded)-2])
	f.Fuzz(func(t *testing.T, query, variables, link string) {
		encoded, err := encodeDraft(query, variables)
		switch {
		case err != nil:
			if p := problem.Of(err); p.Code != problem.TooLarge {
				t.Errorf("%q: got %v, want only long ones refused", query, err)
			}
		case len(encoded) > maxDraft || url.QueryEscape(encoded) != encoded:
			t.Errorf("%q: got %q, want a short text that needs no escaping", query, encoded)
		case utf8.ValidString(query + variables):
			if gotQuery, gotVariables := decodeDraft(encoded); gotQuery != query || gotVariables != variables {
				t.Errorf("got %q and %q, want %q and %q", gotQuery, gotVariables, query, variables)
			}
		}
		decoded, with := decodeDraft(link)
		if len(decoded)+len(with) > 2*saved.MaxDocument || len(link) > maxDraft && decoded != "" || !utf8.ValidString(decoded+with) {
			t.Errorf("%q: got %d bytes, want a short text or none", link, len(decoded)+len(with))
		}
	})
}
