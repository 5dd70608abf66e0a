package page

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"

	"palmares/internal/core/cache"
)

//go:embed icons
var iconFiles embed.FS

const manifestPath = "/manifest.webmanifest"

// IconPaths are those of the manifest, of the icons that browsers look for and that pages refer
// to, and of the image that other sites show with a link.
var IconPaths = []string{manifestPath, "/favicon.ico", "/apple-touch-icon.png", "/icon-192.png", "/icon-512.png", "/og.png"}

// manifest describes the site to browsers that add it to a home screen.
const manifest = `{"name":%[1]s,"short_name":%[1]s,"start_url":"/","display":"minimal-ui","background_color":"#fbfaf8","theme_color":"#0b6b50",` +
	`"icons":[{"src":"/icon-192.png","sizes":"192x192","type":"image/png"},{"src":"/icon-512.png","sizes":"512x512","type":"image/png"}]}`

// Icons serves the files at IconPaths. CONTRIBUTING.md says how to draw them.
func (s Service) Icons() http.Handler {
	icons := map[string]*cache.Entry{}
	for _, name := range IconPaths {
		mediaType, content := map[string]string{".ico": "image/x-icon", ".png": "image/png"}[path.Ext(name)], []byte(nil)
		if name == manifestPath {
			quoted, _ := json.Marshal(s.ServiceName) // texts are always valid
			mediaType, content = "application/manifest+json", fmt.Appendf(nil, manifest, quoted)
		} else {
			content = mustRead(iconFiles, "icons"+name)
		}
		icons[name] = cache.NewEntry(content, http.Header{
			"Content-Type": {mediaType}, "Cache-Control": {"public, max-age=86400"}, "Vary": {"Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"},
		})
	}
	return Handler(func(w http.ResponseWriter, r *http.Request) error { return icons[r.URL.Path].Write(w, r) })
}
