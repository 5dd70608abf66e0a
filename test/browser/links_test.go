package browser_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// All links of the public site work, in both languages: those on pages, in their
// heads, in Atom feeds, in Markdown and in llms.txt. Those that need an account lead to the
// sign-in page, which returns to them.
func TestLinks(t *testing.T) {
	testkit.FullTier(t, "it follows thousands of links")
	t.Parallel()
	cfg := testkit.SQLite(t)
	s := blackbox.Serve(t, cfg, "--demo", "--trusted-proxies", "127.0.0.1")
	c := &crawler{t: t, base: "http://" + s.Address, key: blackbox.NewKey(t, cfg, "pro"), found: map[string]string{}, followed: map[string]int{}, documents: map[string]*document{}}
	for _, l := range lang.All {
		c.add("the start", l.Path("/"))
	}
	c.add("the start", "/llms.txt")
	for len(c.queue) > 0 {
		address := c.queue[0]
		c.queue = c.queue[1:]
		c.visit(address)
	}
	check.True(t, len(c.found) >= 1000, "got %d links, want at least 1,000", len(c.found))
	t.Logf("%d links, %d documents", len(c.found), len(c.documents))
}

type crawler struct {
	t         *testing.T
	base, key string
	queue     []string
	found     map[string]string // where each link was found first
	followed  map[string]int    // number of documents whose links were followed, by pattern
	documents map[string]*document
	requests  int
}

// document is a response, without a fragment in its address.
type document struct {
	links, ids []string
}

// Pages of the current catalog are all followed. Of those with parameters, which
// show the same links for other releases or orders, a few are.
const followedVariants = 4

// pattern returns what a URL has in common with others of its kind.
func pattern(u *url.URL) string {
	if u.RawQuery == "" {
		return u.Path
	}
	parts := strings.Split(u.Path, "/")
	var names []string
	for name := range u.Query() {
		if name == "chart" {
			name += "=" + u.Query().Get(name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(parts[:min(len(parts), 3)], "/") + "?" + strings.Join(names, "&")
}

func (c *crawler) add(from, link string) {
	if _, known := c.found[link]; !known {
		c.found[link] = from
		c.queue = append(c.queue, link)
	}
}

func (c *crawler) visit(link string) {
	u, err := url.Parse(link)
	if err != nil {
		c.t.Errorf("%s, on %s: got an invalid URL, want a valid one", link, c.found[link])
		return
	}
	fragment := u.Fragment
	u.Fragment = ""
	d := c.documents[u.String()]
	if d == nil {
		// The explorer shows any query in the same way, and every tool has the same charts.
		if (strings.HasSuffix(u.Path, "/explorer") || u.Query().Has("chart")) && c.followed[pattern(u)] >= followedVariants {
			return
		}
		d = c.get(link, u)
		c.documents[u.String()] = d
		if c.followed[pattern(u)]++; c.followed[pattern(u)] <= followedVariants {
			for _, target := range d.links {
				c.add(u.String(), target)
			}
		}
	}
	check.True(c.t, fragment == "" || d.ids == nil || slices.Contains(d.ids, fragment), "%s, on %s: got no element #%s, want one", link, c.found[link], fragment)
}

// get requests a document as a new visitor each time: the budget for pages is small.
func (c *crawler) get(link string, u *url.URL) *document {
	request := check.Try(http.NewRequest(http.MethodGet, c.base+u.String(), nil)).OK(c.t)
	c.requests++
	request.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.1", c.requests/256, c.requests%256))
	request.Header.Set("Accept", "text/html,*/*;q=0.8")
	if strings.HasPrefix(u.Path, "/api/") { // some paths require a key
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	request.Header.Set("Accept-Encoding", "identity") // compressing takes longer than rendering
	response := check.Try(http.DefaultClient.Do(request)).OK(c.t)
	defer response.Body.Close()
	body := check.Try(io.ReadAll(response.Body)).OK(c.t)
	check.True(c.t, response.StatusCode == http.StatusOK, "%s, on %s: got %d, want 200", link, c.found[link], response.StatusCode)
	// The sign-in page leads to the account by default.
	if end := response.Request.URL; strings.HasSuffix(end.Path, "/login") && !strings.HasSuffix(u.Path, "/login") && !strings.HasSuffix(u.Path, "/account") && end.Query().Get("next") == "" {
		c.t.Errorf("%s, on %s: got %s, want a sign-in page that returns", link, c.found[link], end)
	}
	d := &document{}
	switch kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); kind {
	case "text/html":
		d.readHTML(string(body))
	case "application/atom+xml":
		d.readText(inFeed, string(body))
	case "text/markdown", "text/plain":
		d.readText(inMarkdown, string(body))
	}
	d.links = slices.DeleteFunc(d.links, func(link string) bool { return !strings.HasPrefix(link, "/") && !strings.HasPrefix(link, c.base) })
	for i, link := range d.links {
		if d.links[i] = strings.TrimPrefix(link, c.base); d.links[i] == "" {
			d.links[i] = "/"
		}
	}
	return d
}

func (d *document) readHTML(body string) {
	d.ids = []string{}
	page, err := html.Parse(strings.NewReader(body))
	if err != nil {
		return // an empty page has no links
	}
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				d.ids = append(d.ids, a.Val)
			case a.Key == "src", a.Key == "href" && !strings.HasPrefix(a.Val, "#"):
				d.links = append(d.links, a.Val)
			}
		}
	}
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			if id, err := url.PathUnescape(strings.TrimPrefix(a.Val, "#")); a.Key == "href" && strings.HasPrefix(a.Val, "#") && (err != nil || !slices.Contains(d.ids, id)) {
				d.links = append(d.links, "/missing"+a.Val)
			}
		}
	}
}

var (
	inFeed     = regexp.MustCompile(`href="([^"]+)"`)
	inMarkdown = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func (d *document) readText(link *regexp.Regexp, body string) {
	for _, match := range link.FindAllStringSubmatch(body, -1) {
		d.links = append(d.links, html.UnescapeString(match[1]))
	}
}
