package portal

import (
	"net/url"
	"palmares/internal/dev/check"
	"strings"
	"testing"
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
		check.OK(t, err, next)
		check.Equal(t, to.Host, base.Host, next)
		check.Equal(t, to.Scheme, base.Scheme, next)
		// Browsers remove tabs and line breaks, and read a backslash as a slash.
		read := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(got)), "\\", "/")
		check.True(t, strings.HasPrefix(read, "/") && !strings.HasPrefix(read, "//"), "%q: got %q, which leads to another site", next, got)
	})
}
