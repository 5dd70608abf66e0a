// Package icon serves the service's icons, and the image that other sites show with
// a link to it. internal/dev/drawicons draws them; start reading at Register.
package icon

import (
	"embed"
	"encoding/json"
	"net/http"
	"path"

	"palmares/internal/core/cache"
	"palmares/internal/web/page"
)

//go:generate sh -c "cd files && go run palmares/internal/dev/drawicons"

//go:embed files
var files embed.FS

// The paths that browsers look for, and those that pages refer to.
const (
	FaviconPath  = "/favicon.ico"
	TouchPath    = "/apple-touch-icon.png"
	ManifestPath = "/manifest.webmanifest"
	CardPath     = "/og.png"

	smallPath = "/icon-192.png"
	largePath = "/icon-512.png"
)

// Register adds the icons, the manifest and the card of a service to mux.
func Register(mux *http.ServeMux, service page.Service) {
	add := func(name, mediaType string, content []byte) {
		entry := cache.NewEntry(content, http.Header{
			"Content-Type":           {mediaType},
			"Cache-Control":          {"public, max-age=86400"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		})
		mux.HandleFunc(name, page.Handler(entry.Write))
	}
	add(ManifestPath, "application/manifest+json", manifest(service.ServiceName))
	for name, mediaType := range map[string]string{
		FaviconPath: "image/x-icon", TouchPath: "image/png", smallPath: "image/png", largePath: "image/png", CardPath: "image/png",
	} {
		content, err := files.ReadFile(path.Join("files", name))
		if err != nil {
			panic(err) // the files are part of the program
		}
		add(name, mediaType, content)
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
