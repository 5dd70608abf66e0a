package cache

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
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
		other := send(append([]byte("x"), long...), http.MethodGet, "Accept-Encoding", accept).Header().Get("ETag")
		check.True(t, other != tag, "%s: got tag %s for another body too, want another", accept, tag)
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

// tagOf returns the ETag of a response from a cache with this secret.
func tagOf(t *testing.T, secret, body string, q Key) string {
	t.Helper()
	c := New(1<<20, []byte(secret), slog.New(slog.DiscardHandler))
	response := check.Try(c.Get(t.Context(), q, func(context.Context) (*Entry, int, error) { return NewEntry([]byte(body), nil), 1, nil })).OK(t)
	w := httptest.NewRecorder()
	check.OK(t, response.Write(w, httptest.NewRequest(http.MethodGet, "/", nil)))
	return w.Header().Get("ETag")
}

// An ETag depends on the secret, the body and the query, so that it cannot be
// computed from a guessed body. It depends on nothing else, so that it stays the
// same across restarts, servers and callers.
func TestTagsCannotBeGuessed(t *testing.T) {
	q := Key{Operation: "tool", Variables: "plume"}
	first := tagOf(t, "secret", "body", q)
	check.Equal(t, tagOf(t, "secret", "body", q), first, "after a restart")
	check.Equal(t, first, `"s08_eC2uUu2FUeWJpk41"`)
	keyed := q
	keyed.Keyed = true
	check.Equal(t, tagOf(t, "secret", "body", keyed), first, "with a key")
	for name, other := range map[string]string{
		"another secret":        tagOf(t, "other", "body", q),
		"another body":          tagOf(t, "secret", "other", q),
		"another operation":     tagOf(t, "secret", "body", Key{Operation: "tools", Variables: "plume"}),
		"other variables":       tagOf(t, "secret", "body", Key{Operation: "tool", Variables: "plumes"}),
		"parts joined together": tagOf(t, "secret", "body", Key{Operation: "toolplume"}),
	} {
		check.True(t, other != first, "%s: got the same tag %s, want another", name, other)
	}
}

// executions counts the executions that a response reports to its writer.
type executions struct {
	http.ResponseWriter
	reported int
}

func (e *executions) ReportExecution() { e.reported++ }

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A response reports to its writer whether it was executed, and a context can
// forbid executions.
func TestExecutionIsReported(t *testing.T) {
	c := newCache()
	work := func(context.Context) (*Entry, int, error) { return NewEntry([]byte("x"), nil), 1, nil }
	check.Try(c.Get(WithCachedOnly(t.Context()), tools, work)).Fails(t, "cached only")
	c.Publish(1)
	for i, want := range []int{1, 0, 0} {
		ctx := t.Context()
		if i == 2 {
			ctx = WithCachedOnly(ctx)
		}
		response := check.Try(c.Get(ctx, tools, work)).OK(t)
		w := &executions{ResponseWriter: httptest.NewRecorder()}
		check.OK(t, response.Write(wrapped{w}, httptest.NewRequest(http.MethodGet, "/", nil)))
		check.Equal(t, w.reported, want, "request %d: executions reported", i)
	}
}

// Between gzip and zstd, the smaller one is sent.
func TestSmallerEncoding(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2_000)
	for i := range words {
		words[i] = strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(3))
	}
	bodies := map[string][]byte{"repetitive": []byte(strings.Repeat("every tool has a name; ", 20_000)), "random": []byte(strings.Join(words, " "))}
	seen := map[string]bool{}
	for name, body := range bodies {
		e := NewEntry(body, nil)
		want := "gzip"
		if len(e.encoded(zstandard).body) < len(e.encoded(gzipped).body) {
			want = "zstd"
		}
		for _, accept := range []string{"gzip, zstd", "zstd, gzip"} {
			check.Equal(t, send(body, http.MethodGet, "Accept-Encoding", accept).Header().Get("Content-Encoding"), want, "%s, %s", name, accept)
		}
		seen[want] = true
	}
	check.Equal(t, len(seen), 2, "encodings")
}

// Tables share the budget with responses, and survive a release unless they
// belong to one.
func TestTables(t *testing.T) {
	c := newCache()
	c.Publish(1)
	documents, counts := NewTable[string](c, "documents"), NewTable[int](c, "counts")
	q := Key{Operation: "x"}
	documents.Put(Timeless, q, "parsed", 100)
	counts.Put(c.Edition(), q, 7, 0)
	n, ok := counts.Get(c.Edition(), q)
	check.Must(t, ok, true)
	check.Equal(t, n, 7)
	old := c.Edition()
	check.OK(t, c.Renew(2))
	_, ok = counts.Get(old, q)
	check.True(t, !ok, "got the count of an older release, want none")
	doc, ok := documents.Get(Timeless, q)
	check.Must(t, ok, true)
	check.Equal(t, doc, "parsed")
	for i := range 1_000 {
		documents.Put(Timeless, Key{Operation: "x", Variables: strings.Repeat("y", i)}, "parsed", 10_000)
	}
	c.items.CleanUp()
	w := c.Weight()
	check.True(t, w <= 1<<20, "got %d bytes, want at most %d", w, 1<<20)
	c.Restart(1)
	_, ok = documents.Get(Timeless, q)
	check.True(t, !ok, "got a document after release numbers restarted, want none")
}

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
			check.True(t, strings.Contains(lower, "identity") || strings.Contains(lower, "*"), "%q: got 406, want identity, which is not excluded", header)
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
		check.True(t, !matches([]string{header}, tag) || strings.Contains(header, tag) || strings.TrimSpace(header) == "*",
			"%q: got a match, want none", header)
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
