package prose

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/web/page"
)

var testConfig = Config{
	Service: page.Service{PublicURL: "https://catalog.example", ServiceName: "The Catalog", Credit: "Source : The Catalog (https://catalog.example)", Log: slog.New(slog.DiscardHandler)},
}

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	g, err := New(testConfig)
	check.OK(t, err)
	return g
}

// send sends a request with headers given in pairs.
func send(handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestAllFilesAreListed(t *testing.T) {
	for folder, l := range map[string]lang.Language{"guides": lang.English, "guides/fr": lang.French} {
		found, err := fs.Glob(files, folder+"/*.md")
		check.OK(t, err)
		for _, file := range found {
			if name := strings.TrimSuffix(path.Base(file), ".md"); !slices.Contains(GuideNames, name) {
				t.Errorf("got no %s in GuideNames, want every guide", file)
			}
		}
		all, err := ReadGuides(testConfig.Service, l)
		check.OK(t, err, l)
		check.Must(t, len(all), len(found), l)
		for _, g := range all {
			if g.Title == "" || !strings.HasSuffix(g.Summary, ".") || utf8.RuneCountInString(g.Summary) > 250 {
				t.Errorf("%s in %s: got title %q and summary %q, want a title and a sentence of at most 250 characters", g.Name, l, g.Title, g.Summary)
			}
			if strings.Contains(g.Text, "localhost") || strings.Contains(g.Text, "127.0.0.1") {
				t.Errorf("%s in %s: got a local address, want {{base}}", g.Name, l)
			}
		}
	}
}

var (
	headingLine = regexp.MustCompile(`(?m)^#+ `)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	badFrench   = regexp.MustCompile(`[\p{L}\d)] [:;?!»%€]|« |'|\d \d{3}\b`)
)

// TestTranslations compares each guide with its translation: the same outline, rows
// of tables, links and code, in French typography.
func TestTranslations(t *testing.T) {
	english, err := ReadGuides(testConfig.Service, lang.English)
	check.OK(t, err)
	french, err := ReadGuides(testConfig.Service, lang.French)
	check.OK(t, err)
	for i, g := range french {
		original, prose := codeBlock.ReplaceAllString(english[i].Text, ""), codeBlock.ReplaceAllString(g.Text, "")
		for what, pattern := range map[string]*regexp.Regexp{
			"headings": headingLine, "rows": regexp.MustCompile(`(?m)^\|`), "items": regexp.MustCompile(`(?m)^(-|\d\.) `),
			"links": regexp.MustCompile(`\]\([^)]*\)`),
		} {
			got, want := pattern.FindAllString(prose, -1), pattern.FindAllString(original, -1)
			slices.Sort(got)
			slices.Sort(want)
			check.Slices(t, got, want, "%s: %s", g.Name, what)
		}
		if g.Title == english[i].Title && g.Summary == english[i].Summary {
			t.Errorf("%s: got %q, want it in French", g.Name, g.Summary)
		}
		check.Equal(t, badFrench.FindString(inlineCode.ReplaceAllString(prose, "x")), "", "%s: want a no-break space or ’", g.Name)
		check.Slices(t, codeBlock.FindAllString(g.Text, -1), codeBlock.FindAllString(english[i].Text, -1), "%s: other code in French", g.Name)
	}
}

// A translation must use every code block of the original.
func TestInsertCode(t *testing.T) {
	const original = "# A\n\n```sh\none\n```\n\n```text\ntwo\n```\n"
	if got, err := insertCode("# B\n\n{{code}}\n\n{{code}}\n", original); err != nil || got != strings.Replace(original, "A", "B", 1) {
		t.Errorf("got %q and %v, want both blocks", got, err)
	}
	if got, err := insertCode("# B\n\n{{code}}\n", original); err == nil {
		t.Errorf("got %q, want an error: a block is missing", got)
	}
}

// Links to a section work in every language.
func TestSectionsHaveTheSameIDs(t *testing.T) {
	handler := newHandler(t)
	for _, name := range GuideNames {
		var ids [2][][]string
		for i, l := range lang.All {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(lang.With(t.Context(), l), "GET", guidesPath+"/"+name, nil))
			ids[i] = regexp.MustCompile(`<h[1-6] id="([^"]*)">`).FindAllStringSubmatch(recorder.Body.String(), -1)
		}
		if len(ids[0]) < 3 || fmt.Sprint(ids[0]) != fmt.Sprint(ids[1]) {
			t.Errorf("%s: got the IDs %v in French, want %v", name, ids[1], ids[0])
		}
	}
}

func TestPages(t *testing.T) {
	handler := newHandler(t)
	for i, name := range append([]string{""}, GuideNames...) {
		path := strings.TrimSuffix(guidesPath+"/"+name, "/")
		got := send(handler, "GET", path)
		page := got.Body.String()
		if got.Code != 200 || got.Header().Get("Content-Type") != "text/html; charset=utf-8" || got.Header().Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("%s: got %d %v, want HTML that varies by Accept", path, got.Code, got.Header())
		}
		if got.Header().Get("Cache-Control") != "public, max-age=0, s-maxage=60, stale-while-revalidate=3600" || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: got %v, want Cache-Control and HSTS", path, got.Header())
		}
		if csp := got.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: got policy %s, want a strict one", path, csp)
		}
		for _, wrong := range []string{"style=", "<script>", "onclick", "raw HTML omitted", "{{", "<no value>"} {
			if strings.Contains(page, wrong) {
				t.Errorf("%s: got %s, want none", path, wrong)
			}
		}
		check.Equal(t, strings.Count(page, "<h1"), 1, "%s: h1 elements", path)
		check.Equal(t, wellFormed(page), nil, path)
		for _, id := range duplicates(regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1)) {
			t.Errorf("%s: got the id %s twice, want unique ids", path, id)
		}
		if i > 1 && !strings.Contains(page, `<a rel="prev" href="/en/guides/`+GuideNames[i-2]+`"`) {
			t.Errorf("%s: got no link to the previous guide, want one", path)
		}
		if i > 0 && i < len(GuideNames) && !strings.Contains(page, `<a rel="next" href="/en/guides/`+GuideNames[i]+`"`) {
			t.Errorf("%s: got no link to the next guide, want one", path)
		}
		head := send(handler, "HEAD", path)
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(page)) {
			t.Errorf("HEAD %s: got %d %v, want 200 without a body", path, head.Code, head.Header())
		}
		if again := send(handler, "GET", path, "If-None-Match", got.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s with If-None-Match: got %d, want 304", path, again.Code)
		}
		if compressed := send(handler, "GET", path, "Accept-Encoding", "br"); compressed.Header().Get("Content-Encoding") != "br" || compressed.Body.Len() >= len(page) {
			t.Errorf("%s: got %v, want it compressed", path, compressed.Header())
		}
		if wrong := send(handler, "POST", path); wrong.Code != 405 || wrong.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: got %d %v, want 405", path, wrong.Code, wrong.Header())
		}
	}
}

// wellFormed returns an error if tags are not closed in order.
func wellFormed(page string) error {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func duplicates(found [][]string) (twice []string) {
	seen := map[string]bool{}
	for _, match := range found {
		if seen[match[1]] {
			twice = append(twice, match[1])
		}
		seen[match[1]] = true
	}
	return twice
}

func TestButtonsAreTranslated(t *testing.T) {
	handler := newHandler(t)
	for l, want := range map[lang.Language]string{lang.English: " hidden>Copy</button>", lang.French: " hidden>Copier</button>"} {
		request := httptest.NewRequestWithContext(lang.With(t.Context(), l), "GET", "/guides/quick-start", nil)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if page := recorder.Body.String(); !strings.Contains(page, `<button type="button" lang="`+string(l)+`"`) || !strings.Contains(page, want) {
			t.Errorf("%s: got no %s, want it", l, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	handler := newHandler(t)
	for accept, markdown := range map[string]bool{"": false, "text/markdown, */*": true, "text/html, text/markdown;q=0.5": false} {
		for _, path := range []string{"/guides", "/guides/paging"} {
			got := send(handler, "GET", path, "Accept", accept)
			if is := got.Header().Get("Content-Type") == "text/markdown; charset=utf-8"; got.Code != 200 || is != markdown || got.Header().Get("Vary") != "Accept, Accept-Encoding" {
				t.Errorf("%s with %q: got %d %v, want Markdown: %v", path, accept, got.Code, got.Header(), markdown)
			}
		}
	}
	for _, path := range []string{"/guides", "/guides/paging"} {
		byPath, negotiated := send(handler, "GET", path+".md"), send(handler, "GET", path, "Accept", "text/markdown")
		if byPath.Code != 200 || byPath.Header().Get("Content-Type") != page.MarkdownType || byPath.Body.String() != negotiated.Body.String() {
			t.Errorf("%s.md: got %d %v, want the negotiated Markdown", path, byPath.Code, byPath.Header())
		}
		if !strings.HasPrefix(byPath.Body.String(), "# ") || !strings.Contains(byPath.Body.String(), testConfig.PublicURL) {
			t.Errorf("%s.md: got %s, want a title and absolute links", path, byPath.Body)
		}
	}
}

func TestNotFound(t *testing.T) {
	handler := newHandler(t)
	for path, want := range map[string]string{
		"/guides/webhook":      `<li><a href="/en/guides/webhooks">Webhooks</a></li>`,
		"/guides/Quickstart":   `<li><a href="/en/guides/quick-start">Quick start</a></li>`,
		"/guides/pagin":        `<a href="/en/guides/paging">Pagination</a>`,
		"/guides/a/cashing":    `<a href="/en/guides/caching">Caching</a>`,
		"/guides/xxxxxxxxxxxx": `href="/en/guides">All guides</a>`,
		"/guides/%3Cscript%3E": `href="/en/guides">All guides</a>`,
	} {
		got := send(handler, "GET", path)
		if got.Code != 404 || !strings.Contains(got.Body.String(), want) || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %s, want 404 with %s", path, got.Code, got.Body, want)
		}
		if got.Header().Get("Content-Security-Policy") == "" || strings.Contains(got.Body.String(), "<script>") {
			t.Errorf("%s: got %v, want a policy and no script", path, got.Header())
		}
	}
	if got := send(handler, "GET", "/guides/webhoks.md"); got.Code != 404 || got.Header().Get("Content-Type") != page.MarkdownType ||
		!strings.Contains(got.Body.String(), "## Did you mean…?\n\n- [Webhooks](https://catalog.example/en/guides/webhooks.md)\n\n- [All guides](https://catalog.example/en/guides.md)\n") {
		t.Errorf("Markdown: got %d %s, want 404 with a suggestion", got.Code, got.Body)
	}
	check.Equal(t, send(handler, "GET", "/guides/pagin/").Code, 404, "unknown guide with a slash")
}

func TestTrailingSlash(t *testing.T) {
	handler := newHandler(t)
	for path, want := range map[string]string{"/guides/": "/en/guides", "/guides/paging/": "/en/guides/paging", "/guides/quick-start/?a=b": "/en/guides/quick-start?a=b"} {
		if got := send(handler, "GET", path); got.Code != 301 || got.Header().Get("Location") != want {
			t.Errorf("%s: got %d %v, want 301 to %s", path, got.Code, got.Header(), want)
		}
	}
}

func TestInfo(t *testing.T) {
	for text, want := range map[string]Info{
		"sh":                 {Language: "sh"},
		"js receiver.mjs":    {Language: "js", Name: "receiver.mjs"},
		"sh until=listening": {Language: "sh", Until: "listening"},
		"":                   {},
	} {
		check.Equal(t, ParseInfo(text), want, "%q", text)
	}
}
