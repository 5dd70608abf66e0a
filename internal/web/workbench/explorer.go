package workbench

import (
	"bytes"
	"encoding/json"
	"net/http"

	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// explorer is what the script of the page works with.
type explorer struct {
	Query      string            `json:"query"`     // what the address asks to open, or ""
	Variables  string            `json:"variables"` // of it, as JSON
	Headers    string            `json:"headers"`   // as JSON, or ""
	Base       string            `json:"base"`
	Schema     string            `json:"schema"`
	Workers    map[string]string `json:"workers"`
	Examples   []Example         `json:"examples"`
	Operations []Operation       `json:"operations"`
}

// showExplorer shows what the address asks for, and runs nothing of it.
func (w *Workbench) showExplorer(to http.ResponseWriter, r *http.Request) error {
	const caching, vary = "private, no-cache", "Accept-Encoding" // who signs in gets another
	if len(w.built) == 0 {
		head := page.Head{Styles: []string{Assets.Path("schema.css")}}
		content := w.content(ExplorerPath, head, struct{ Schema, Address string }{w.Schema, SchemaPath})
		return w.show(to, r, "schema", content, caching, vary)
	}
	e := explorer{
		Base: w.PublicURL, Schema: SchemaPath, Examples: Examples, Operations: w.Operations,
		Workers: map[string]string{
			"editor": w.built["editor.worker.js"], "json": w.built["json.worker.js"], "graphql": w.built["graphql.worker.js"],
		},
	}
	var note string
	e.Query, e.Variables, note = w.asked(r)
	key := w.Key(r)
	if key != "" {
		e.Headers = indented(map[string]string{"Authorization": "Bearer " + key})
	}
	head := page.Head{Wide: true, Styles: []string{w.built["explorer.css"]}, Scripts: []string{w.built["explorer.js"]}}
	content := w.content(ExplorerPath, head, struct {
		Examples     []Example
		Schema, Note string
		Script       explorer
	}{Examples, SchemaPath, note, e})
	if key != "" {
		return w.showSecret(to, r, "explorer", content)
	}
	return w.show(to, r, "explorer", content, caching, vary)
}

// asked is what an address asks to open, and what is wrong with it.
func (w *Workbench) asked(r *http.Request) (query, variables, note string) {
	values := r.URL.Query()
	if target := values.Get("path"); target != "" {
		query, given, err := w.Explain(target)
		if err != nil {
			return "", "", "This path cannot be opened here. " + problem.Of(err).Message
		}
		if len(given) > 0 {
			variables = indented(given)
		}
		return query, variables, ""
	}
	query, variables = values.Get("query"), values.Get("variables")
	var tidy bytes.Buffer
	switch {
	case variables == "":
	case json.Indent(&tidy, []byte(variables), "", "  ") != nil:
		note = "The variables in this address are no JSON."
	default:
		variables = tidy.String()
	}
	return query, variables, note
}

// indented is JSON for people.
func indented(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the page's template does that for all of it
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "" // a path's variables are words and finite numbers
	}
	return string(bytes.TrimRight(text.Bytes(), "\n"))
}
