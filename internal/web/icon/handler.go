// Package icon serves the service's icons, and the image that other sites show with
// a link to it. internal/dev/drawicons draws them; start reading at New.
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

// Paths are those of the icons, the manifest and the card.
var Paths = []string{ManifestPath, FaviconPath, TouchPath, smallPath, largePath, CardPath}

// Icons serves the icons, the manifest and the card of a service.
type Icons map[string]*cache.Entry // by path

// New returns the icons of a service.
func New(service page.Service) Icons {
	icons := Icons{}
	for _, name := range Paths {
		mediaType := "image/png"
		content, err := files.ReadFile(path.Join("files", name))
		switch name {
		case ManifestPath:
			mediaType, content, err = "application/manifest+json", manifest(service.ServiceName), nil
		case FaviconPath:
			mediaType = "image/x-icon"
		}
		if err != nil {
			panic(err) // the files are part of the program
		}
		icons[name] = cache.NewEntry(content, http.Header{
			"Content-Type":           {mediaType},
			"Cache-Control":          {"public, max-age=86400"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		})
	}
	return icons
}

// ServeHTTP serves the file at one of Paths.
func (i Icons) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Handler(i[r.URL.Path].Write)(w, r)
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
