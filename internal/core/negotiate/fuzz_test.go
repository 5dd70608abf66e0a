package negotiate

import (
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// FuzzAccept checks that an Accept header selects an offer or none, that it means the same in
// upper case and in several lines, and that no offer is selected with quality 0.
func FuzzAccept(f *testing.F) {
	for _, header := range []string{
		"", "*/*", "text/html,application/json;q=0.9,*/*;q=0.1", "application/*;q=0", "text/html;q=2", "application/json;charset=latin1", "text/html;q=nan;q=1", ",;,", "TEXT/HTML ; Q = 0.5",
	} {
		f.Add(header)
	}
	offers := []string{"application/json", "text/html", "text/markdown"}
	f.Fuzz(func(t *testing.T, header string) {
		got := Accepts([]string{header}, offers...)
		if got != "" && !slices.Contains(offers, got) {
			t.Fatalf("%q: got %q, want an offer", header, got)
		}
		if strings.TrimSpace(header) == "" {
			return
		}
		if q, _ := quality([]string{header}, got); got != "" && q <= 0 || q > 1 {
			t.Errorf("%q: got %q of quality %v, want one above 0", header, got, q)
		}
		for _, offer := range offers {
			if q, _ := quality([]string{header}, offer); got == "" && q > 0 || Named([]string{header}, offer) > q {
				t.Errorf("%q: got %q, want %s, whose quality is %v", header, got, offer, q)
			}
		}
		if lines := Accepts(strings.Split(header, ","), offers...); lines != got && strings.TrimSpace(strings.ReplaceAll(header, ",", "")) != "" {
			t.Errorf("%q in several lines: got %q, want %q", header, lines, got)
		}
		upper := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, header)
		check.Equal(t, Accepts([]string{upper}, offers...), Accepts([]string{header}, offers...), "%q in upper case: want the same", header)
	})
}
