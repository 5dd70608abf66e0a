package workbench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/params"
	"palmares/internal/web/page"
)

// reference is the data of the reference's script.
type reference struct {
	Document string `json:"document"`
}

const referenceCaching, referenceVary = "no-cache", "Accept, Accept-Encoding"

func (w *Workbench) showReference(rw http.ResponseWriter, r *http.Request) error {
	switch {
	case page.WantsMarkdown(r.Header["Accept"]):
		return w.showMarkdown(rw, r)
	case len(w.built) == 0:
		return w.showPaths(rw, r)
	}
	head := page.Head{Wide: true, Styles: []string{w.built["reference.css"]}, Scripts: []string{w.built["jitless.js"], w.built["reference.js"]}}
	content := w.content(ReferencePath, head, reference{w.Document})
	content.Markdown = MarkdownPath
	return w.showApp(rw, r, "reference", content, referenceCaching, referenceVary)
}

// showPaths lists the paths if Scalar is not built in.
func (w *Workbench) showPaths(rw http.ResponseWriter, r *http.Request) error {
	return w.withSamples(rw, r, ReferencePath, func(operations []params.Operation) (*cache.Entry, error) {
		content := w.content(ReferencePath, page.Head{}, struct {
			Operations []params.Operation
			Document   string
		}{operations, w.Document})
		content.Markdown = MarkdownPath
		return templates.Entry("paths", content, referenceCaching, referenceVary)
	})
}

func (w *Workbench) showMarkdown(rw http.ResponseWriter, r *http.Request) error {
	return w.withSamples(rw, r, MarkdownPath, func(operations []params.Operation) (*cache.Entry, error) {
		return cache.NewEntry(w.markdown(operations), http.Header{
			"Content-Type": {"text/markdown; charset=utf-8"}, "Cache-Control": {referenceCaching}, "Vary": {referenceVary},
		}), nil
	})
}

// withSamples sends a document with example requests. It is rendered once per
// release. If the release cannot be read, the examples are from the demo catalog.
func (w *Workbench) withSamples(rw http.ResponseWriter, r *http.Request, name string, render func([]params.Operation) (*cache.Entry, error)) error {
	response, err := w.Cache.Get(r.Context(), cache.Key{Operation: "workbench " + name}, func(ctx context.Context) (*cache.Entry, int, error) {
		samples, release, err := w.Samples(ctx)
		if err != nil {
			return nil, 0, err
		}
		operations := slices.Clone(w.Operations)
		for i := range operations {
			operations[i].Example = samples[operations[i].Path]
		}
		entry, err := render(operations)
		return entry, release, err
	})
	entry := response.Entry
	if err != nil {
		if entry, err = render(w.Operations); err != nil {
			return err
		}
	}
	return entry.Write(rw, r)
}

// markdown returns the reference as Markdown.
func (w *Workbench) markdown(operations []params.Operation) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s API reference\n\n", w.ServiceName)
	fmt.Fprintf(&text, "All endpoints accept GET requests and return JSON. Errors have the form `{\"error\": \"…\"}`. The OpenAPI document is at %s%s. If you reuse the data, show this credit: %s\n", w.PublicURL, w.Document, w.Credit)
	for _, o := range operations {
		fmt.Fprintf(&text, "\n## GET %s\n\n%s. %s", o.Path, o.Summary, o.Details)
		if o.RequiresKey {
			text.WriteString(" Requires an API key: `Authorization: Bearer YOUR_KEY`.")
		}
		text.WriteString("\n")
		if len(o.Parameters) > 0 {
			text.WriteString("\n")
		}
		for _, p := range o.Parameters {
			fmt.Fprintf(&text, "- `%s`: %s", p.Name, p.Description)
			if p.Default != nil {
				fmt.Fprintf(&text, " Default: `%v`.", p.Default)
			}
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "\nExample: %s%s\n", w.PublicURL, o.Example)
	}
	return []byte(text.String())
}
