package page

import (
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func TestAssets(t *testing.T) {
	handler := ServeAssets(SharedAssets)
	for name, contentType := range map[string]string{"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest("GET", SharedAssets.Path(name), nil))
		if got.Code != 200 || got.Header().Get("Content-Type") != contentType || got.Body.Len() == 0 {
			t.Errorf("%s: got %d, %s and %d bytes, want 200 and %s", name, got.Code, got.Header().Get("Content-Type"), got.Body.Len(), contentType)
		}
		check.Equal(t, got.Header().Get("Cache-Control"), "public, max-age=31536000, immutable", "%s: %v", name, got.Header())
		check.Equal(t, got.Header().Get("X-Content-Type-Options"), "nosniff", "%s: %v", name, got.Header())
		head := httptest.NewRecorder()
		handler.ServeHTTP(head, httptest.NewRequest("HEAD", SharedAssets.Path(name), nil))
		if head.Code != 200 || head.Header().Get("Content-Length") == "" || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: got %d with %d bytes, want 200 with a length and no body", name, head.Code, head.Body.Len())
		}
	}
	compressed := httptest.NewRequest("GET", SharedAssets.Path("style.css"), nil)
	compressed.Header.Set("Accept-Encoding", "gzip, br, zstd")
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, compressed)
	if got.Header().Get("Content-Encoding") == "" || got.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("got %v, want a compressed style sheet", got.Header())
	}
	for _, path := range []string{"/assets/style.css", "/assets/nothing", "/assets/..%2fpage.go", "/assets/", "/assets/style-000000000000.css"} {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest("GET", path, nil))
		if got.Code != 404 || strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d, %s, want 404 and not immutable", path, got.Code, got.Header().Get("Cache-Control"))
		}
	}
}
