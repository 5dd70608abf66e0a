package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
)

// tried is a path of the OpenAPI document with the URL of its example.
type tried struct {
	Tag, Path, Target string
	Keyed             bool
}

// triedBy returns all paths of the OpenAPI document of a server.
func triedBy(t *testing.T, s *blackbox.Server) []tried {
	t.Helper()
	var document struct {
		Paths map[string]struct {
			Get struct {
				Tags       []string
				Parameters []struct{ Name, Example string }
				Security   []any
			}
		}
	}
	if err := json.Unmarshal([]byte(blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/api/v1/openapi.json", "").Body)), &document); err != nil {
		t.Fatal(err)
	}
	var all []tried
	for path, item := range document.Paths {
		one := tried{Tag: item.Get.Tags[0], Path: path, Target: path, Keyed: item.Get.Security != nil}
		for _, p := range item.Get.Parameters {
			if p.Example != "" {
				one.Target = strings.Replace(one.Target, "{"+p.Name+"}", p.Example, 1)
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b tried) int { return strings.Compare(a.Path, b.Path) })
	if len(all) != 10 {
		t.Fatalf("got %d paths, want more", len(all))
	}
	return all
}

// The reference can send each example request without further input, except for
// a key where one is required.
func TestReferenceTriesPaths(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	key := blackbox.NewKey(t, cfg, "developer")
	s := startWorkbenchOn(t, cfg)
	base := "http://" + s.Address
	p := browser.Start(t).Open(t, browser.Look{}, base+"/docs")
	shows(t, p, "#reference", "/api/v1/tools/{slug}")
	shows(t, p, "main .bench", "Guides")
	for _, other := range []string{"Ruby", "PHP", "Powered by"} {
		if strings.Contains(p.Text("#reference"), other) {
			t.Errorf("got %s on the page", other)
		}
	}
	const client = "[role=dialog][aria-label='API Client']"
	for _, one := range triedBy(t, s) {
		here := "tag/" + one.Tag + "/GET" + one.Path
		p.Eval(fmt.Sprintf("location.hash = %q", here), nil)
		button := fmt.Sprintf("[id='api-1/%s'] .show-api-client-button", here)
		p.Text(button)
		p.Eval(fmt.Sprintf("document.querySelector(%q).click()", button), nil) // independent of the scroll position
		shows(t, p, client, "Send get request to "+base+one.Path)
		if one.Keyed {
			p.Fill(client+" input[placeholder=Token]", key)
		}
		p.Eval("performance.clearResourceTimings()", nil)
		p.Click(client + " .address-bar-bg-states button.scalar-button-solid")
		if status := statusOf(t, p, base+one.Target); status != 200 {
			t.Errorf("%s: got %d, want 200", one.Path, status)
		}
		shows(t, p, client, "200 OK")
	}
	// Wait for the animation to end.
	p.Eval("Promise.allSettled(document.getAnimations().filter(({effect}) => effect.getComputedTiming().endTime < 10_000).map(({finished}) => finished)).then(() => 0)", nil)
	looksRight(t, p, "docs-tried")
}

// statusOf returns the status that the page got from a URL, ignoring its query.
func statusOf(t *testing.T, p *browser.Page, address string) (status int) {
	t.Helper()
	wait.Until(t, "the page has requested "+address, func() bool {
		p.Eval(fmt.Sprintf("performance.getEntriesByType('resource').find(({name}) => name.split('?')[0] === %q)?.responseStatus ?? 0", address), &status)
		return status != 0
	})
	return status
}

// The reference has code samples for curl, JavaScript, Python and Go only.
func TestReferenceCodeSamples(t *testing.T) {
	t.Parallel()
	s := startWorkbench(t)
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/docs")
	shows(t, p, "#reference", "Test Request")
	p.Click("#reference .client-libraries__select")
	shows(t, p, "[role=listbox]", "Curl")
	var offered []string
	p.Eval("[...document.querySelectorAll('[role=listbox] [role=option]')].map(({id}) => id.split('-').at(-1))", &offered)
	if want := []string{"go/native", "js/fetch", "python/python3", "python/requests", "shell/curl"}; !slices.Equal(offered, want) {
		t.Errorf("got code samples for %q", offered)
	}
	for _, name := range []string{"Shell", "JavaScript", "Python", "Go"} {
		shows(t, p, "[role=listbox]", name)
	}
}
