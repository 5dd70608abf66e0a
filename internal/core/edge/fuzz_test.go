package edge

import (
	"strings"
	"testing"
)

// FuzzIsSlug checks that a text from a request becomes one key of a response, in both
// headers, or none.
func FuzzIsSlug(f *testing.F) {
	for _, text := range []string{"plume", "a b", "a,b", "", "all", "é", "a\r\nSet-Cookie: b=c", strings.Repeat("a", 81)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !IsSlug(text) {
			if text != "" && len(text) <= 80 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == "" {
				t.Errorf("%q: got no slug, want one", text)
			}
			return
		}
		keys := strings.Fields(Header(Tool(text), Category(text), Release(7))[0])
		if len(keys) != 4 || strings.ContainsAny(keys[1], ",;\"\\") || keys[1] == keys[2] || keys[1] == keys[3] || keys[2] == keys[3] || keys[1] == All {
			t.Errorf("%q: got %q, want four different keys", text, keys)
		}
	})
}
