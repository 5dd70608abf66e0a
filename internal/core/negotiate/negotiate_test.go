package negotiate

import (
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func TestAccepts(t *testing.T) {
	const json, modern = "application/json", "application/graphql-response+json"
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, json},
		{[]string{""}, json},
		{[]string{" "}, json},
		{[]string{"*/*"}, json},
		{[]string{"application/*"}, json},
		{[]string{modern}, modern},
		{[]string{"Application/JSON"}, json},
		{[]string{modern + ", " + json}, json},
		{[]string{json + ";q=0.9, " + modern}, modern},
		{[]string{json + ";q=0.9", modern}, modern},
		{[]string{modern + ";q=0.2, " + json}, json},
		{[]string{modern + ";q=0, */*;q=0.1"}, json},
		{[]string{json + ";q=0, */*"}, modern},
		{[]string{json + ";q=0, application/*;q=0.1, */*;q=0"}, modern},
		{[]string{"*/*, " + modern}, modern},
		{[]string{"*/*;q=0.9, " + modern + " ; q = 0.5"}, json},
		{[]string{"text/html, " + modern + ";q=0.5"}, modern},
		{[]string{modern + "; charset=utf-8"}, modern},
		{[]string{modern + `; charset="UTF-8"; q=0.3`}, modern},
		{[]string{modern + "; charset=latin1"}, ""},
		{[]string{"text/html"}, ""},
		{[]string{json + ";q=0"}, ""},
		{[]string{json + ";q=2"}, ""},
		{[]string{json + ";q=NaN"}, ""},
		{[]string{"application/*;q=0, text/*"}, ""},
		{[]string{";;;,"}, ""},
		{[]string{"*"}, ""},
	} {
		check.Equal(t, Accepts(c.accept, json, modern), c.want, "%q", c.accept)
	}
}

func TestNamed(t *testing.T) {
	for accept, want := range map[string]float64{
		"":                              0,
		"*/*":                           0,
		"text/*":                        0,
		"text/html":                     1,
		"TEXT/HTML;q=0.5":               0.5,
		"text/html;q=0.25, */*":         0.25,
		"text/html;q=x":                 0,
		"application/json, text/html":   1,
		"text/html2, application/xhtml": 0,
	} {
		check.Equal(t, Named([]string{accept}, "text/html"), want, "%q", accept)
	}
}

func TestQuality(t *testing.T) {
	for header, want := range map[string]float64{"gzip": 1, "gzip;q=0.3": 0.3, " gzip ; Q = 0 ": 0, "gzip;q=": 0.7, "gzip;q=-1": 0.7, "gzip;a=b;q=0.2": 0.2} {
		for item := range Items([]string{header}) {
			check.Equal(t, item.Name, "gzip", header)
			check.Equal(t, item.Quality(0.7), want, header)
		}
	}
}

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
		check.MustTrue(t, got == "" || slices.Contains(offers, got), "%q: got %q, want an offer", header, got)
		if strings.TrimSpace(header) == "" {
			return
		}
		q, _ := quality([]string{header}, got)
		check.True(t, (got == "" || q > 0) && q <= 1, "%q: got %q of quality %v, want one above 0", header, got, q)
		for _, offer := range offers {
			q, _ := quality([]string{header}, offer)
			check.True(t, (got != "" || q <= 0) && Named([]string{header}, offer) <= q, "%q: got %q, want %s, whose quality is %v", header, got, offer, q)
		}
		lines := Accepts(strings.Split(header, ","), offers...)
		check.True(t, lines == got || strings.TrimSpace(strings.ReplaceAll(header, ",", "")) == "", "%q in several lines: got %q, want %q", header, lines, got)
		upper := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, header)
		check.Equal(t, Accepts([]string{upper}, offers...), Accepts([]string{header}, offers...), "%q in upper case: want the same", header)
	})
}
