package cache

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

var long = []byte(strings.Repeat("every tool has a name; ", 200))

// send writes a body in response to a request with these headers.
func send(body []byte, method string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if err := NewEntry(body, http.Header{"Content-Type": {"text/plain"}}).Write(w, r); err != nil {
		problem.Write(w, err)
	}
	return w
}

func TestEncodings(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                 "",
		"identity":                         "",
		"gzip":                             "gzip",
		"GZip":                             "gzip",
		"x-gzip":                           "gzip",
		"deflate":                          "",
		"br":                               "br",
		"zstd":                             "zstd",
		"gzip, deflate, br, zstd":          "br",
		"gzip, deflate, br":                "br",
		"gzip;q=1, br;q=0.5":               "gzip",
		"gzip, br;q=0.5, zstd;q=0.9":       "gzip",
		"gzip;q=0.9, br;q=0.9, zstd":       "zstd",
		"gzip;q=0.5, identity;q=0.8":       "",
		"gzip;q=0.5, identity;q=0.5":       "gzip",
		"*":                                "br",
		"*;q=0.1, zstd;q=0":                "br",
		"gzip;q=0":                         "",
		"identity;q=0, gzip":               "gzip",
		"identity;q=0, *":                  "br",
		"gzip;q=nonsense":                  "gzip",
		" gzip ; q = 0.5 ":                 "gzip",
		"gzip;q=0, br;q=0, zstd;q=0":       "",
		",,;;,":                            "",
		strings.Repeat("x,", 500) + "gzip": "gzip",
	} {
		got := send(long, http.MethodGet, "Accept-Encoding", accept)
		check.Equal(t, got.Header().Get("Content-Encoding"), want, "%.60q", accept)
		check.Equal(t, got.Code, 200, "%.60q", accept)
		check.Equal(t, string(decoded(t, got)), string(long), "%.60q: after decoding", accept)
		check.Equal(t, fmt.Sprint(got.Body.Len()), got.Header().Get("Content-Length"), "%.60q: %d bytes", accept, got.Body.Len())
	}
	for _, accept := range []string{"identity;q=0", "*;q=0", "deflate, identity;q=0", "identity;q=0.000, gzip;q=0"} {
		got := send(long, http.MethodGet, "Accept-Encoding", accept)
		check.Equal(t, got.Code, http.StatusNotAcceptable, accept)
		check.Equal(t, got.Header().Get("ETag"), "", accept)
	}
}

func decoded(t *testing.T, got *httptest.ResponseRecorder) []byte {
	t.Helper()
	var r io.Reader = got.Body
	var err error
	body := bytes.NewReader(got.Body.Bytes())
	switch got.Header().Get("Content-Encoding") {
	case "":
		r = body
	case "gzip":
		r, err = gzip.NewReader(body)
	case "br":
		r = brotli.NewReader(body)
	case "zstd":
		r, err = zstd.NewReader(body)
	}
	check.OK(t, err)
	return check.Try(io.ReadAll(r)).OK(t)
}

// A small body is not compressed, unless identity is not acceptable.
func TestTinyBodies(t *testing.T) {
	small := []byte(`{"data":[]}`)
	if got := send(small, http.MethodGet, "Accept-Encoding", "gzip, br, zstd"); got.Header().Get("Content-Encoding") != "" || !bytes.Equal(got.Body.Bytes(), small) {
		t.Errorf("got headers %v, want no Content-Encoding", got.Header())
	}
	got := send(small, http.MethodGet, "Accept-Encoding", "gzip, identity;q=0")
	check.Equal(t, got.Header().Get("Content-Encoding"), "gzip", "headers %v", got.Header())
	check.Equal(t, string(decoded(t, got)), string(small), "headers %v", got.Header())
}

func TestTags(t *testing.T) {
	tags := map[string]bool{}
	for _, accept := range []string{"", "gzip", "br", "zstd"} {
		got := send(long, http.MethodGet, "Accept-Encoding", accept)
		tag := got.Header().Get("ETag")
		check.Equal(t, tags[tag], false, "%s: tag %s", accept, tag)
		check.True(t, strings.HasPrefix(tag, `"`) && strings.HasSuffix(tag, `"`), "%s: got tag %s, want a unique strong one", accept, tag)
		tags[tag] = true
		check.Equal(t, send(long, http.MethodGet, "Accept-Encoding", accept).Header().Get("ETag"), tag, "%s: tag the second time", accept)
		if other := send(append([]byte("x"), long...), http.MethodGet, "Accept-Encoding", accept).Header().Get("ETag"); other == tag {
			t.Errorf("%s: got tag %s for another body too, want another", accept, tag)
		}
	}
}

func TestNotModified(t *testing.T) {
	tag := send(long, http.MethodGet).Header().Get("ETag")
	var sixteen []string
	for i := range maxTags {
		sixteen = append(sixteen, fmt.Sprintf(`W/"%d"`, i))
	}
	for header, want := range map[string]int{
		tag:                          304,
		"W/" + tag:                   304,
		"*":                          304,
		`"", ` + tag:                 304,
		`x", ` + tag:                 200, // not a list of tags
		",":                          200,
		`"other", ` + tag:            304,
		`"other",` + tag + `,"more"`: 304,
		strings.Join(sixteen[1:], ", ") + ", " + tag:   304,
		strings.Join(sixteen, ", ") + ", " + tag:       200, // only maxTags are compared
		strings.Join(sixteen, ","):                     200,
		`"with, comma", ` + tag:                        304,
		strings.Trim(tag, `"`):                         200,
		strings.TrimSuffix(tag, `"`):                   200,
		`"` + strings.ToUpper(tag[1:len(tag)-1]) + `"`: 200,
		"*xyz":             200,
		`"x", *`:           200,
		"nonsense, " + tag: 200,
		"":                 200,
		`""`:               200,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := send(long, method, "If-None-Match", header)
			check.Equal(t, got.Code, want, "%s %.60q", method, header)
			check.Equal(t, got.Header().Get("ETag"), tag, "%s %.60q: tag", method, header)
			if want == 304 && (got.Body.Len() > 0 || got.Header().Get("Content-Length") != "" || got.Header().Get("Content-Type") != "") {
				t.Errorf("%s %.60q: got %d bytes and %v, want no content", method, header, got.Body.Len(), got.Header())
			}
		}
	}
	compressed := send(long, http.MethodGet, "Accept-Encoding", "gzip").Header().Get("ETag")
	check.Equal(t, send(long, http.MethodGet, "If-None-Match", compressed).Code, 200, "tag of another encoding")
}
