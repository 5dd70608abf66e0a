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

// Every way that leads on from the first page leads somewhere.
func TestHomeLeadsOn(t *testing.T) {
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
		t.Fatalf("only %d links: %v", len(links), links)
	}
	for _, link := range links {
		response, err := http.Get("http://" + s.Address + link) // the account's leads on to where one signs in
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", link, response.StatusCode)
		}
	}
}

// Who goes too far is led back, also to pages that are not the catalog's.
func TestPagesAbove(t *testing.T) {
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
			t.Errorf("%s: %d does not lead to %s", path, response.StatusCode, above)
		}
	}
}

// The first call works as it is written, and its button copies all of it.
func TestFirstCall(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/")
	line := p.Text("#curl")
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var tools struct{ Data []struct{ Score float64 } }
	if err := json.Unmarshal(out, &tools); err != nil || len(tools.Data) != 5 || tools.Data[4].Score < 8 {
		t.Errorf("%s: %v\n%s", line, err, out)
	}

	const button = `button[data-copy="curl"]`
	// No page may read the clipboard, so we listen on the way there.
	p.Eval(`(write => navigator.clipboard.writeText = text => { document.body.dataset.copied = text; return write(text) })(navigator.clipboard.writeText.bind(navigator.clipboard)), 0`, nil)
	p.Click(button)
	p.Shows(button, "Copied")
	var copied string
	if p.Eval("document.body.dataset.copied", &copied); copied != line {
		t.Errorf("copied: %q", copied)
	}
}

// Without a script a tool's page is the same, word for word and line for line.
func TestToolWithoutScripts(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	const path = "/tools/plume"
	with := chrome.Open(t, browser.Look{}, "http://"+s.Address+path)
	without := chrome.Open(t, browser.Look{NoScript: true}, "http://"+s.Address+path)
	if text := without.Text("main"); text != with.Text("main") {
		t.Errorf("without a script it says\n%s", text)
	}
	for _, part := range []string{"svg.steps path[d^='M0']", "svg.steps circle", "table time", ".list a[href^='/tools/']", ".duels a", ".cards a[href='/api/v1/tools/plume']"} {
		if !without.Exists(part) {
			t.Errorf("%s is not there", part)
		}
	}
}
