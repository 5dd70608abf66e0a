package page

import (
	"net/http"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
)

// The headers of pages that are the same for all visitors and exist as Markdown.
const (
	Caching = "public, max-age=0, s-maxage=60, stale-while-revalidate=3600"
	Vary    = "Accept, Accept-Encoding"
)

// Documents are pages whose Markdown is their source, by language and path.
type Documents map[lang.Language]map[string]Document

// Document is such a page. Page is nil if there is only a text.
type Document struct {
	Page func() (*cache.Entry, error)
	Text *cache.Entry
}

// Add adds a page, and its text at the same path and at that of its Markdown
// version.
func (d Documents) Add(l lang.Language, path string, page func() (*cache.Entry, error), text *cache.Entry) {
	if d[l] == nil {
		d[l] = map[string]Document{}
	}
	d[l][path] = Document{page, text}
	d[l][MarkdownPath(path)] = Document{Text: text}
}

// TextEntry returns the text of a document.
func TextEntry(text string) *cache.Entry {
	return cache.NewEntry([]byte(text), http.Header{
		"Content-Type": {MarkdownType}, "Cache-Control": {Caching}, "Vary": {Vary}, "X-Content-Type-Options": {"nosniff"},
	})
}

// WriteDocument sends the page, or the text to clients that prefer it.
func (s Service) WriteDocument(w http.ResponseWriter, r *http.Request, d Document) error {
	if d.Page == nil || WantsMarkdown(r) {
		return d.Text.Write(w, r)
	}
	html, err := d.Page()
	if err != nil {
		return err
	}
	s.SetSecurityHeaders(w.Header(), FormPolicy)
	return html.Write(w, r)
}
