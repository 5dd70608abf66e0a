package workbench

import (
	"context"
	"net/http"

	"palmares/internal/core/cache"
	"palmares/internal/web/page"
)

// reference is what the script of the page works with.
type reference struct {
	Document string `json:"document"`
}

const referenceCaching, referenceVary = "no-cache", "Accept, Accept-Encoding"

func (w *Workbench) showReference(to http.ResponseWriter, r *http.Request) error {
	switch {
	case page.WantsMarkdown(r.Header["Accept"]):
		return w.showMarkdown(to, r)
	case len(w.built) == 0:
		return w.showPaths(to, r)
	}
	head := page.Head{Wide: true, Styles: []string{w.built["reference.css"]}, Scripts: []string{w.built["jitless.js"], w.built["reference.js"]}}
	content := w.content(ReferencePath, head, reference{w.Document})
	content.Markdown = MarkdownPath
	return w.show(to, r, "reference", content, referenceCaching, referenceVary)
}

// showPaths lists the paths where there is no program to try them in.
func (w *Workbench) showPaths(to http.ResponseWriter, r *http.Request) error {
	entry, err := w.sampled(r.Context(), ReferencePath, func(ctx context.Context, operations []Operation) (*cache.Entry, error) {
		content := w.content(ReferencePath, page.Head{}, struct {
			Operations []Operation
			Document   string
		}{operations, w.Document})
		content.Markdown = MarkdownPath
		return w.entry(ctx, "paths", content, referenceCaching, referenceVary)
	})
	if err != nil {
		return err
	}
	return entry.Write(to, r)
}
