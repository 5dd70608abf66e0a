package apidocs

import (
	"errors"
	"net/http"

	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/transport/downloads"
	"palmares/internal/web/page"
)

// FilesPage lists the files of the newest release.
type FilesPage struct {
	page.Service
	Files *downloads.Handler
}

func formatSize(l lang.Language, bytes int64) string {
	if bytes < 1e6 {
		return l.Text("%s KB", l.Decimal(float64(bytes)/1e3, 0, 1))
	}
	return l.Text("%s MB", l.Decimal(float64(bytes)/1e6, 0, 1))
}

// ServeHTTP shows the page. While the files are being written, it says so.
func (p *FilesPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Handle(page.FormPolicy, func(w http.ResponseWriter, r *http.Request) error {
		caching := "public, max-age=60"
		list, err := p.Files.List(r.Context())
		if err != nil {
			caching = "no-store"
			if !errors.Is(err, r.Context().Err()) {
				p.Log.WarnContext(r.Context(), "listing files failed", "cause", err, "request_id", problem.RequestID(r.Context()))
			}
		}
		content := p.Content(lang.Of(r.Context()), downloads.PagePath, page.Head{}, list)
		content.Markdown, content.AsMarkdown = page.MarkdownPath(downloads.PagePath), page.WantsMarkdown(r)
		return templates.Send(w, r, "files", content, caching)
	})(w, r)
}
