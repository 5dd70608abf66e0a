package web_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

var ownLink = regexp.MustCompile(`href="(/[^"#]*)"`)

// All links of the home page work.
func TestHomeLinks(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	home, _ := packed(t, s, "/")
	var links []string
	for _, match := range ownLink.FindAllStringSubmatch(home, -1) {
		links = append(links, match[1])
	}
	slices.Sort(links)
	links = slices.Compact(links)
	if len(links) < 30 {
		t.Fatalf("got %d links, want more: %v", len(links), links)
	}
	for _, link := range links {
		response, err := http.Get("http://" + s.Address + link) // the account page redirects to the sign-in page
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d, want 200", link, response.StatusCode)
		}
	}
}

// The page for unknown paths links to the nearest existing page.
func TestNotFoundLinks(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	for path, above := range map[string]string{
		"/docs/x": "/docs", "/explorer/x/y": "/explorer", "/status/x": "/status", "/tools/plume/x": "/tools/plume", "/categories/code": "/categories",
	} {
		request, err := http.NewRequest(http.MethodGet, "http://"+s.Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_, suggested, _ := strings.Cut(blackbox.ReadAll(t, response.Body), "Did you mean")
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound || !strings.Contains(suggested, `<li><a href="`+above+`"`) {
			t.Errorf("%s: got %d without a link to %s", path, response.StatusCode, above)
		}
	}
}

// The example call on the home page works, and its button copies it.
func TestFirstCall(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/")
	line := p.Text("#curl")
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: got %v", line, err)
	}
	var tools struct{ Data []struct{ Score float64 } }
	if err := json.Unmarshal(out, &tools); err != nil || len(tools.Data) != 5 || tools.Data[4].Score < 8 {
		t.Errorf("%s: got %v\n%s", line, err, out)
	}

	const button = `button[data-copy="curl"]`
	// Pages may not read the clipboard, so the test intercepts writes to it.
	p.Eval(`(write => navigator.clipboard.writeText = text => { document.body.dataset.copied = text; return write(text) })(navigator.clipboard.writeText.bind(navigator.clipboard)), 0`, nil)
	p.Click(button)
	p.Shows(button, "Copied")
	var copied string
	if p.Eval("document.body.dataset.copied", &copied); copied != line {
		t.Errorf("got %q copied, want the call", copied)
	}
}

// The page of a tool is the same without scripts.
func TestToolWithoutScripts(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	const path = "/tools/plume"
	with := chrome.Open(t, browser.Look{}, "http://"+s.Address+path)
	without := chrome.Open(t, browser.Look{NoScript: true}, "http://"+s.Address+path)
	if text := without.Text("main"); text != with.Text("main") {
		t.Errorf("got a different text without scripts:\n%s", text)
	}
	for _, part := range []string{"svg.steps path[d^='M0']", "svg.steps circle", "table time", ".list a[href^='/tools/']", ".duels a", ".cards a[href='/api/v1/tools/plume']"} {
		if !without.Exists(part) {
			t.Errorf("got no %s", part)
		}
	}
}
