package cache

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

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
