package workbench

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

//go:embed examples/*.graphql
var exampleFiles embed.FS

// Example is an example query of the explorer.
type Example struct {
	Title string `json:"-"`
	Query string `json:"query"`
}

// Examples are all example queries, in the order of their file names.
var Examples = readExamples()

// readExamples takes the title from the comment in the first line of each file.
func readExamples() (all []Example) {
	names, err := fs.Glob(exampleFiles, "examples/*.graphql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := exampleFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		all = append(all, Example{Title: strings.TrimPrefix(title, "# "), Query: string(text)})
	}
	return all
}

// explorer is the data of the explorer's script.
type explorer struct {
	Query      string             `json:"query"` // to open, or ""
	Variables  string             `json:"variables"`
	Headers    string             `json:"headers"`
	Base       string             `json:"base"`
	Schema     string             `json:"schema"`
	Workers    map[string]string  `json:"workers"`
	Examples   []Example          `json:"examples"`
	Operations []params.Operation `json:"operations"`
}

// showExplorer opens the query in the URL without running it.
func (w *Workbench) showExplorer(rw http.ResponseWriter, r *http.Request) error {
	const caching, vary = "private, no-cache", "Accept-Encoding" // private, because signed-in users get their key
	if len(w.built) == 0 {
		content := w.content(ExplorerPath, page.Head{Styles: []string{Assets.Path("schema.css")}}, struct{ Schema, Path string }{w.Schema, SchemaPath})
		entry, err := templates.Entry("schema", content, caching, vary)
		if err != nil {
			return err
		}
		return entry.Write(rw, r)
	}
	e := explorer{
		Base: w.PublicURL, Schema: SchemaPath, Examples: Examples, Operations: w.Operations,
		Workers: map[string]string{
			"editor": w.built["editor.worker.js"], "json": w.built["json.worker.js"], "graphql": w.built["graphql.worker.js"],
		},
	}
	var note string
	e.Query, e.Variables, note = w.queryToOpen(r)
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
	if key == "" {
		return w.showApp(rw, r, "explorer", content, caching, vary)
	}
	// A page with a key is not compressed: its size would leak the key to
	// attackers who choose the query beside it (BREACH).
	w.SetSecurityHeaders(rw.Header(), appPolicy)
	rw.Header().Set("Cache-Control", "no-store")
	return templates.Write(rw, http.StatusOK, "explorer", content)
}

// queryToOpen returns the query and variables from the URL, given as such or as a
// REST path, and a note if something is wrong with them.
func (w *Workbench) queryToOpen(r *http.Request) (query, variables, note string) {
	url := r.URL.Query()
	if target := url.Get("path"); target != "" {
		query, values, err := w.Explain(target)
		if err != nil {
			return "", "", "This path cannot be opened in the explorer. " + problem.Of(err).Message
		}
		if len(values) > 0 {
			variables = indented(values)
		}
		return query, variables, ""
	}
	query, variables = url.Get("query"), url.Get("variables")
	var formatted bytes.Buffer
	switch {
	case variables == "":
	case json.Indent(&formatted, []byte(variables), "", "  ") != nil:
		note = "The variables in the URL are not valid JSON."
	default:
		variables = formatted.String()
	}
	return query, variables, note
}

// indented returns a value as indented JSON.
func indented(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings and finite numbers can be encoded
	}
	return strings.TrimRight(text.String(), "\n")
}
