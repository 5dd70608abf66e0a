package portal

import (
	"regexp"
	"strings"
	"testing"
)

var assetInPage = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

func TestAssets(t *testing.T) {
	t.Parallel()
	b := onSQLite(t).browser()
	kinds := map[string]string{"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
	found := assetInPage.FindAllStringSubmatch(b.get("/login").Body.String(), -1)
	if len(found) != len(kinds) {
		t.Errorf("the page names %v", found)
	}
	for _, match := range found {
		got := b.get(match[1])
		kind := kinds[match[1][strings.LastIndexByte(match[1], '.')+1:]]
		if got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type"), kind) || got.Body.Len() == 0 {
			t.Errorf("%s: %d %s", match[1], got.Code, got.Header().Get("Content-Type"))
		}
		if got.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", match[1], got.Header())
		}
		if head := b.send("HEAD", match[1], nil); head.Code != 200 || head.Header().Get("Content-Length") == "" {
			t.Errorf("HEAD %s: %d", match[1], head.Code)
		}
	}
	for _, path := range []string{"/assets/portal.css", "/assets/nothing", "/assets/..%2fportal.go", "/assets/", "/assets/portal-000000000000.css"} {
		if got := b.get(path); got.Code != 404 || strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %s", path, got.Code, got.Header().Get("Cache-Control"))
		}
	}
}

func TestChart(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 5, 9: 10, 11: 20, 12345: 20000, 50000: 50000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d is rounded up to %d", n, got)
		}
	}
	days := []dayUse{{Requests: 0}, {Requests: 1}, {Requests: 1000}}
	drawn := draw(days)
	if drawn.Bars[0].Height != 0 || drawn.Bars[1].Height < 2 || drawn.Bars[2].Height != barsHigh || drawn.Bars[2].Y != roomAbove {
		t.Errorf("drawn: %+v", drawn)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
}
