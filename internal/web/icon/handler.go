package icon

import (
	"encoding/json"
	"net/http"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// The paths that browsers look for, and those that pages refer to.
const (
	FaviconPath  = "/favicon.ico"
	TouchPath    = "/apple-touch-icon.png"
	ManifestPath = "/manifest.webmanifest"
	CardPath     = "/og.png"

	smallPath = "/icon-192.png"
	largePath = "/icon-512.png"
)

// Register adds the icons, the manifest and the card of a service to mux. Each is
// drawn once, on its first request.
func Register(mux *http.ServeMux, service page.Service) {
	for path, f := range map[string]struct {
		mediaType string
		content   func() []byte
	}{
		FaviconPath:  {"image/x-icon", ICO},
		TouchPath:    {"image/png", func() []byte { return touchPNG(180) }},
		smallPath:    {"image/png", func() []byte { return PNG(192) }},
		largePath:    {"image/png", func() []byte { return PNG(512) }},
		CardPath:     {"image/png", func() []byte { return Card(service.ServiceName) }},
		ManifestPath: {"application/manifest+json", func() []byte { return manifest(service.ServiceName) }},
	} {
		entry := sync.OnceValue(func() *cache.Entry {
			return cache.NewEntry(f.content(), http.Header{
				"Content-Type":           {f.mediaType},
				"Cache-Control":          {"public, max-age=86400"},
				"Vary":                   {"Accept-Encoding"},
				"X-Content-Type-Options": {"nosniff"},
			})
		})
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			err := page.CheckMethod(w, r)
			if err == nil {
				err = entry().Write(w, r)
			}
			if err != nil {
				problem.Write(w, err)
			}
		})
	}
}

// manifest describes the site to browsers that add it to a home screen.
func manifest(service string) []byte {
	type icon struct {
		Source string `json:"src"`
		Sizes  string `json:"sizes"`
		Type   string `json:"type"`
	}
	text, err := json.Marshal(struct {
		Name       string `json:"name"`
		ShortName  string `json:"short_name"`
		Start      string `json:"start_url"`
		Display    string `json:"display"`
		Background string `json:"background_color"`
		Theme      string `json:"theme_color"`
		Icons      []icon `json:"icons"`
	}{service, service, "/", "minimal-ui", "#fbfaf8", "#0b6b50", []icon{{smallPath, "192x192", "image/png"}, {largePath, "512x512", "image/png"}}})
	if err != nil {
		panic(err) // texts are always valid
	}
	return text
}
