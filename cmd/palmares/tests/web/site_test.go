package web_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

// checkPage checks that a page is accessible, not wider than its window, and
// does not cut off its tables. The browser itself watches the console and
// requests to other hosts.
func checkPage(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	p.Axe()
	p.Screenshot(name)
	var wider bool
	if p.Eval("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wider); wider {
		t.Errorf("%s: got a page wider than its window", name)
	}
	if p.Eval(`[...document.querySelectorAll(".scroll:has(> table.list)")].some(box => box.scrollWidth > box.clientWidth)`, &wider); wider {
		t.Errorf("%s: got a table that is cut off", name)
	}
}

func TestSiteIsAccessible(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	for _, look := range looks {
		p := chrome.Open(t, look, "http://"+s.Address+"/")
		for name, path := range map[string]string{
			"home": "/", "tools": "/tools", "tools-filtered": "/tools?category=code&sort=name_asc", "tools-none": "/tools?q=nobodyhasthis",
			"tool": "/tools/plume", "tool-untested": "/tools/apostille", "comparisons": "/comparatifs", "comparison": "/comparatifs/plume-vs-ecritoire-cie",
			"categories": "/categories", "status": "/status", "graveyard": "/cimetiere", "tool-unknown": "/tools/plmue", "page-unknown": "/toosl", "tools-bad": "/tools?sort=best",
		} {
			p.Go("http://" + s.Address + path)
			if unknown := strings.Contains(name, "unknown"); (p.Status() == 404) != unknown {
				t.Errorf("%s: got %d, want 200", path, p.Status())
			}
			checkPage(t, p, fmt.Sprintf("site-%s-%s", name, lookName(look)))
		}
		p.Go("http://" + s.Address + "/cimetiere")
		p.Click(".duels a")
		checkPage(t, p, "site-retired-"+lookName(look))
	}
}

// The list of tools can be filtered, sorted and paged with only a keyboard and
// without scripts.
func TestSiteByKeyboard(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1})))
	s := blackbox.Serve(t, cfg)
	base := "http://" + s.Address
	p := browser.Start(t).Open(t, browser.Look{NoScript: true, Width: 360}, base+"/")
	to := func(id string) {
		t.Helper()
		for range 120 { // fifty tools are between the form and the link to the next page
			if strings.Contains(p.Focused(), id) {
				return
			}
			p.Press("Tab")
		}
		t.Fatalf("got no way to focus %s", id)
	}
	to("score_min")
	p.Press("5")
	to("sort")
	p.Press("ArrowDown")
	p.Press("ArrowDown")
	to("Show")
	p.Press("Enter")
	if got := p.URL(); !strings.HasPrefix(got, base+"/tools?") || !strings.Contains(got, "score_min=5") || !strings.Contains(got, "sort=name_asc") {
		t.Fatalf("filtered and sorted: got %s", got)
	}
	if said := p.Text("[role=status]"); !strings.HasPrefix(said, "1 to 50 of ") {
		t.Fatalf("got the heading %s", said)
	}
	first := p.Text("tbody th a")
	to("Next")
	p.Press("Enter")
	if said := p.Text("[role=status]"); !strings.HasPrefix(said, "51 to 100 of ") {
		t.Errorf("next page: got %s at %s", said, p.URL())
	}
	if second := p.Text("tbody th a"); strings.ToLower(second) <= strings.ToLower(first) {
		t.Errorf("got %s after %s, want the tools in order", second, first)
	}
}

var inPage = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// Pages are small, including their assets.
func TestPageSizes(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	const most = 50_000
	for _, path := range []string{"/", "/tools/plume"} {
		page, size := packed(t, s, path)
		for _, match := range inPage.FindAllStringSubmatch(page, -1) {
			_, more := packed(t, s, match[1])
			size += more
		}
		if size > most {
			t.Errorf("%s: got %d bytes, want fewer", path, size)
		}
		t.Logf("%s: %d bytes with its assets", path, size)
	}
}

// packed returns a body and its compressed size.
func packed(t *testing.T, s *blackbox.Server, path string) (string, int) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+s.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	sent := blackbox.ReadAll(t, response.Body)
	if response.Header.Get("Content-Encoding") != "gzip" {
		return sent, len(sent)
	}
	plain, err := gzip.NewReader(strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), len(sent)
}
