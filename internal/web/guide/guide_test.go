package guide

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testConfig = Config{
	PublicURL: "https://catalog.example", ServiceName: "The Catalog", Credit: "Source : The Catalog (https://catalog.example)",
	Sections: []Section{{"REST", []Link{{"/api/v1/tools", "/api/v1/tools", "Tools."}}}},
}

func newSite(t *testing.T) http.Handler {
	t.Helper()
	g, err := New(testConfig)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	g.Register(mux)
	return mux
}

// ask sends a request, with headers in pairs.
func ask(site http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

func TestEveryFileIsAGuide(t *testing.T) {
	found, err := files.ReadDir("guides")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if name := strings.TrimSuffix(file.Name(), ".md"); !slices.Contains(order, name) {
			t.Errorf("%s is nowhere in the order", name)
		}
	}
	all, err := read(testConfig)
	if err != nil || len(all) != len(found) {
		t.Fatalf("%d guides of %d files: %v", len(all), len(found), err)
	}
	for _, g := range all {
		if g.Title == "" || !strings.HasSuffix(g.Summary, ".") || len(g.Summary) > 250 {
			t.Errorf("%s: %q, %q", g.Name, g.Title, g.Summary)
		}
		if strings.Contains(g.Text, "localhost") || strings.Contains(g.Text, "127.0.0.1") {
			t.Errorf("%s names another server", g.Name)
		}
	}
}

func TestPages(t *testing.T) {
	site := newSite(t)
	for i, name := range append([]string{""}, order...) {
		path := strings.TrimSuffix(root+"/"+name, "/")
		got := ask(site, "GET", path)
		page := got.Body.String()
		if got.Code != 200 || got.Header().Get("Content-Type") != "text/html; charset=utf-8" || got.Header().Get("Vary") != "Accept, Accept-Encoding" {
			t.Errorf("%s: %d %v", path, got.Code, got.Header())
		}
		if got.Header().Get("Cache-Control") != caching || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: %v", path, got.Header())
		}
		if csp := got.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
		for _, wrong := range []string{"style=", "<script>", "onclick", "raw HTML omitted", "{{", "<no value>"} {
			if strings.Contains(page, wrong) {
				t.Errorf("%s has %s", path, wrong)
			}
		}
		if n := strings.Count(page, "<h1"); n != 1 {
			t.Errorf("%s has %d titles", path, n)
		}
		if err := wellFormed(page); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, twice := range repeated(regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1)) {
			t.Errorf("%s: id %s is there twice", path, twice)
		}
		if i > 1 && !strings.Contains(page, `<a rel="prev" href="/guides/`+order[i-2]+`"`) {
			t.Errorf("%s does not lead back", path)
		}
		if i > 0 && i < len(order) && !strings.Contains(page, `<a rel="next" href="/guides/`+order[i]+`"`) {
			t.Errorf("%s does not lead on", path)
		}
		head := ask(site, "HEAD", path)
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(page)) {
			t.Errorf("HEAD %s: %d %v", path, head.Code, head.Header())
		}
		if again := ask(site, "GET", path, "If-None-Match", got.Header().Get("ETag")); again.Code != 304 || again.Body.Len() != 0 {
			t.Errorf("%s again: %d", path, again.Code)
		}
		if packed := ask(site, "GET", path, "Accept-Encoding", "br"); packed.Header().Get("Content-Encoding") != "br" || packed.Body.Len() >= len(page) {
			t.Errorf("%s is not packed: %v", path, packed.Header())
		}
		if wrong := ask(site, "POST", path); wrong.Code != 405 || wrong.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d %v", path, wrong.Code, wrong.Header())
		}
	}
}

// wellFormed finds tags that are not closed in their order.
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

func repeated(found [][]string) (twice []string) {
	seen := map[string]bool{}
	for _, match := range found {
		if seen[match[1]] {
			twice = append(twice, match[1])
		}
		seen[match[1]] = true
	}
	return twice
}

func TestMarkdown(t *testing.T) {
	site := newSite(t)
	for _, c := range []struct {
		accept   string
		markdown bool
	}{
		{"", false},
		{"*/*", false},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		{"text/markdown", true},
		{"TEXT/Markdown; charset=utf-8", true},
		{"text/markdown, */*", true},
		{"text/markdown, text/html, */*", true},
		{"text/html, text/markdown;q=0.5", false},
		{"text/html;q=0.5, text/markdown;q=0.9", true},
		{"text/markdown;q=0", false},
		{"text/markdown;q=x", false},
		{"text/plain", false},
		{";;;,", false},
	} {
		for _, path := range []string{"/guides", "/guides/paging"} {
			got := ask(site, "GET", path, "Accept", c.accept)
			if is := got.Header().Get("Content-Type") == markdown; got.Code != 200 || is != c.markdown || got.Header().Get("Vary") != "Accept, Accept-Encoding" {
				t.Errorf("%s with %q: %d %v", path, c.accept, got.Code, got.Header())
			}
		}
	}
	for _, path := range []string{"/guides", "/guides/paging"} {
		beside, negotiated := ask(site, "GET", path+".md"), ask(site, "GET", path, "Accept", "text/markdown")
		if beside.Code != 200 || beside.Header().Get("Content-Type") != markdown || beside.Body.String() != negotiated.Body.String() {
			t.Errorf("%s.md: %d %v", path, beside.Code, beside.Header())
		}
		if !strings.HasPrefix(beside.Body.String(), "# ") || !strings.Contains(beside.Body.String(), testConfig.PublicURL) {
			t.Errorf("%s.md: %s", path, beside.Body)
		}
	}
}

func TestMissing(t *testing.T) {
	site := newSite(t)
	for path, want := range map[string]string{
		"/guides/webhook":      `Did you mean <a href="/guides/webhooks">Webhooks</a>?`,
		"/guides/Quickstart":   `Did you mean <a href="/guides/quick-start">Quick start</a>?`,
		"/guides/pagin":        `<a href="/guides/paging">Paging</a>`,
		"/guides/a/cashing":    `<a href="/guides/caching">Caching</a>`,
		"/guides/xxxxxxxxxxxx": `These are all there are`,
		"/guides/%3Cscript%3E": `These are all there are`,
	} {
		got := ask(site, "GET", path)
		if got.Code != 404 || !strings.Contains(got.Body.String(), want) || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		if got.Header().Get("Content-Security-Policy") == "" || strings.Contains(got.Body.String(), "<script>") {
			t.Errorf("%s: %v", path, got.Header())
		}
	}
	if got := ask(site, "GET", "/guides/webhoks.md"); got.Code != 404 || got.Header().Get("Content-Type") != markdown ||
		!strings.Contains(got.Body.String(), "Perhaps you meant:\n\n- [Webhooks](https://catalog.example/guides/webhooks.md)") {
		t.Errorf("as text: %d %s", got.Code, got.Body)
	}
	if got := ask(site, "GET", "/guides/pagin/"); got.Code != 404 {
		t.Errorf("unknown, with a slash: %d", got.Code)
	}
}

// A slash too many leads to the page, as everywhere on the site.
func TestSlashAtTheEnd(t *testing.T) {
	site := newSite(t)
	for path, want := range map[string]string{"/guides/": "/guides", "/guides/paging/": "/guides/paging", "/guides/quick-start/?a=b": "/guides/quick-start?a=b"} {
		if got := ask(site, "GET", path); got.Code != 301 || got.Header().Get("Location") != want {
			t.Errorf("%s: %d %v", path, got.Code, got.Header())
		}
	}
}

// elsewhere are the pages that guides may lead to, beside each other.
var elsewhere = regexp.MustCompile(`^/(docs|explorer|tools|account(/webhooks|/plan|/usage)?|schemas/events/[a-z.]+\.json)$`)

func TestLinks(t *testing.T) {
	site := newSite(t)
	for _, name := range order {
		page := ask(site, "GET", root+"/"+name).Body.String()
		_, article, _ := strings.Cut(page, "<article>")
		article, _, _ = strings.Cut(article, "</article>")
		for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(article, -1) {
			path, fragment, _ := strings.Cut(link[1], "#")
			if elsewhere.MatchString(path) {
				continue
			}
			target := page
			if path != "" {
				got := ask(site, "GET", path)
				if target = got.Body.String(); got.Code != 200 {
					t.Errorf("%s leads to %s: %d", name, link[1], got.Code)
				}
			}
			if fragment != "" && !strings.Contains(target, ` id="`+fragment+`"`) {
				t.Errorf("%s leads to %s, and there is no such heading", name, link[1])
			}
		}
	}
}

func TestForModels(t *testing.T) {
	site := newSite(t)
	got := ask(site, "GET", llms)
	text := got.Body.String()
	if got.Code != 200 || got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d %v", got.Code, got.Header())
	}
	if !regexp.MustCompile(`\A# The Catalog\n\n> [^\n]+\n\n(- [^\n]+\n)+\n## Guides\n\n- \[`).MatchString(text) {
		t.Errorf("it is not of the form:\n%s", text)
	}
	for _, want := range []string{testConfig.Credit, "\n## REST\n\n- [/api/v1/tools](https://catalog.example/api/v1/tools): Tools.\n", "\n## Optional\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(https://catalog\.example(/(?:guides|llms)[^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if got := ask(site, "GET", link[1]); got.Code != 200 {
			t.Errorf("it leads to %s: %d", link[1], got.Code)
		}
	}
	full := ask(site, "GET", llmsFull).Body.String()
	for _, name := range order {
		guide := ask(site, "GET", root+"/"+name+".md").Body.String()
		if !strings.Contains(text, "/guides/"+name+".md): ") || !strings.Contains(full, strings.TrimSpace(guide)) {
			t.Errorf("%s is missing", name)
		}
	}
	if strings.Contains(full, "](/") {
		t.Error("it has links that lead nowhere outside of a page")
	}
}

func TestInfo(t *testing.T) {
	for words, want := range map[string]Info{
		"sh":                 {Language: "sh"},
		"js receiver.mjs":    {Language: "js", Name: "receiver.mjs"},
		"sh until=listening": {Language: "sh", Until: "listening"},
		"":                   {},
	} {
		if got := ParseInfo(words); got != want {
			t.Errorf("%q: %+v", words, got)
		}
	}
}
