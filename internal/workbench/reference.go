package workbench

import (
	"net/http"

	"palmares/internal/page"
)

// reference is what the script of the page works with.
type reference struct {
	Document string `json:"document"`
}

func (w *Workbench) showReference(to http.ResponseWriter, r *http.Request) {
	to.Header().Set("Cache-Control", "no-cache")
	to.Header().Set("Vary", "Accept, Accept-Encoding")
	if page.WantsMarkdown(r.Header["Accept"]) {
		serveEntry(w.text)(to, r)
		return
	}
	if len(w.built) == 0 {
		w.show(to, r, "paths", page.Head{}, struct {
			Operations []Operation
			Document   string
		}{w.Operations, w.Document})
		return
	}
	head := page.Head{Wide: true, Styles: []string{w.built["reference.css"]}, Scripts: []string{w.built["jitless.js"], w.built["reference.js"]}}
	w.show(to, r, "reference", head, reference{w.Document})
}
