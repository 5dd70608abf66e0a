package cache

import (
	"net/http"
	"palmares/internal/dev/check"
	"slices"
	"strings"
	"testing"
)

// FuzzAcceptEncoding checks that a response is sent in a coding that the header allows, that
// the body can be decoded, and that streams are refused for the same headers.
func FuzzAcceptEncoding(f *testing.F) {
	for _, header := range []string{"", "gzip, br;q=0.9, zstd;q=0", "identity;q=0", "*;q=0", "x-gzip", "br;q=nan, *;q=0.1", "gzip;q=0.0001;q=1", "GZIP ; Q=1"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := send(long, http.MethodGet, "Accept-Encoding", header)
		_, streamed := negotiateStream([]string{header})
		if (got.Code == http.StatusOK) != streamed || got.Code != http.StatusOK && got.Code != http.StatusNotAcceptable {
			t.Fatalf("%q: got %d, and streams accepted: %t, want the same", header, got.Code, streamed)
		}
		lower := strings.ToLower(header)
		if got.Code != http.StatusOK {
			if !strings.Contains(lower, "identity") && !strings.Contains(lower, "*") {
				t.Errorf("%q: got 406, want identity, which is not excluded", header)
			}
			return
		}
		if coding := got.Header().Get("Content-Encoding"); coding != "" && !strings.Contains(lower, coding) && !strings.Contains(lower, "*") {
			t.Errorf("%q: got %s, want a coding in the header", header, coding)
		}
		check.Equal(t, string(decoded(t, got)), string(long), header)
	})
}

// FuzzIfNoneMatch checks that a list matches exactly if it contains the tag, and that any
// other header only matches if the tag or an asterisk is in it.
func FuzzIfNoneMatch(f *testing.F) {
	f.Add(`W/"a", "b"`, "a b")
	f.Add(`*`, "")
	f.Add(`"a`, "x tag y")
	f.Add(`"",,"tag"`, "tag")
	f.Fuzz(func(t *testing.T, header, opaque string) {
		const tag = `"tag"`
		if matches([]string{header}, tag) && !strings.Contains(header, tag) && strings.TrimSpace(header) != "*" {
			t.Errorf("%q: got a match, want none", header)
		}
		check.True(t, matches([]string{tag + "," + header}, tag), "%q: got no match for the first tag, want one", header)
		names := strings.Fields(strings.ReplaceAll(opaque, `"`, ""))
		list := ""
		for i, name := range names {
			list += []string{` "`, `,W/"`, `	, "`}[i%3] + name + `"`
		}
		want := slices.Contains(names[:min(len(names), maxTags)], "tag")
		check.Equal(t, matches([]string{list}, tag), want, "%q: %t", list, !want)
	})
}
