package negotiate

import (
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
