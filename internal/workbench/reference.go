package workbench

import (
	"net/http"

	"palmares/internal/page"
)

// reference is what the script of the page works with.
type reference struct {
	Document string `json:"document"`
}

func (w *Workbench) showReference(to http.ResponseWriter, r *http.Request) error {
	if page.WantsMarkdown(r.Header["Accept"]) {
		return w.text.Write(to, r)
	}
	name, content := w.referencePage()
	content.Markdown = MarkdownPath
	return w.show(to, r, name, content, "no-cache", "Accept, Accept-Encoding")
}

// referencePage lists the paths where there is no program to try them in.
func (w *Workbench) referencePage() (name string, content page.Content) {
	if len(w.built) == 0 {
		return "paths", w.content(ReferencePath, page.Head{}, struct {
			Operations []Operation
			Document   string
		}{w.Operations, w.Document})
	}
	head := page.Head{Wide: true, Styles: []string{w.built["reference.css"]}, Scripts: []string{w.built["jitless.js"], w.built["reference.js"]}}
	return "reference", w.content(ReferencePath, head, reference{w.Document})
}
