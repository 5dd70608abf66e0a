package page

import (
	"bytes"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
)

// Templates are the pages of a package by language.
type Templates map[lang.Language]pages

// pages are the pages of one language, each within the layout. A page is parsed
// when it is first rendered, because parsing all of them takes most of the time
// of a short command.
type pages map[string]func() (*template.Template, error)

// NewTemplates returns the pages in folder. All of them can use the templates in the
// subfolder "parts", and the functions, which may depend on the language.
func NewTemplates(from fs.FS, folder string, funcs func(lang.Language) template.FuncMap) Templates {
	all := Templates{}
	for _, l := range lang.All {
		all[l] = pages{}
		layout := sync.OnceValue(func() *template.Template { return mustParseLayout(from, folder, l, funcs) })
		own, _ := fs.Glob(from, path.Join(folder, "*.html"))
		for _, file := range own {
			all[l][strings.TrimSuffix(path.Base(file), ".html")] = sync.OnceValues(func() (*template.Template, error) {
				return template.Must(layout().Clone()).ParseFS(from, file)
			})
		}
	}
	return all
}

func mustParseLayout(from fs.FS, folder string, l lang.Language, funcs func(lang.Language) template.FuncMap) *template.Template {
	all := Functions(l)
	if funcs != nil {
		maps.Copy(all, funcs(l))
	}
	layout := template.Must(template.New("layout.html").Funcs(all).ParseFS(files, "templates/layout.html"))
	if parts, _ := fs.Glob(from, path.Join(folder, "parts", "*.html")); parts != nil {
		template.Must(layout.ParseFS(from, parts...))
	}
	return layout
}

// Functions are what every template can call in a language: t translates a
// message, plural one with a count, and markup one with HTML.
func Functions(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"asset": SharedAssets.Path,
		"t":     func(m string, args ...any) string { return l.Text(lang.Message(m), args...) },
		"plural": func(count int, m string, args ...any) string {
			return l.Plural(count, lang.Message(m), args...)
		},
		"markup":   func(m string, args ...any) template.HTML { return l.HTML(lang.Message(m), args...) },
		"count":    l.Number,
		"day":      l.DayOf,
		"shortDay": l.ShortDayOf,
		"ordinal":  l.Ordinal,
		"dict":     dict,
		"list":     func(values ...string) []string { return values },
	}
}

// dict builds the data of a nested template from keys and values.
func dict(pairs ...any) map[string]any {
	data := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i].(string)] = pairs[i+1]
	}
	return data
}

// Render renders a page into memory, so that a failure never leaves half a page,
// and adds the language to its links.
func (t Templates) Render(name string, content Content) ([]byte, error) {
	var body bytes.Buffer
	content.Language = lang.Parse(string(content.Language))
	page, err := t[content.Language][name]()
	if err == nil {
		err = page.ExecuteTemplate(&body, "layout.html", content)
	}
	return localizeLinks(body.Bytes(), content.Language), err
}

// renderAs renders a page in the selected version, and returns its Content-Type.
func (t Templates) renderAs(name string, content Content) (body []byte, contentType string, err error) {
	body, err = t.Render(name, content)
	if err != nil || !content.AsMarkdown {
		return body, HTML, err
	}
	body, err = content.markdown(body)
	return body, MarkdownType, err
}

// Entry renders a page that is the same for all visitors.
func (t Templates) Entry(name string, content Content, cacheControl string) (*cache.Entry, error) {
	body, contentType, err := t.renderAs(name, content)
	return cache.NewEntry(body, http.Header{"Content-Type": {contentType}, "Cache-Control": {cacheControl}, "Vary": {Vary}}), err
}

// Send renders such a page and sends it.
func (t Templates) Send(w http.ResponseWriter, r *http.Request, name string, content Content, cacheControl string) error {
	entry, err := t.Entry(name, content, cacheControl)
	if err != nil {
		return err
	}
	return entry.Write(w, r)
}

// Write renders a page for one visitor and sends it.
func (t Templates) Write(w http.ResponseWriter, status int, name string, content Content) error {
	body, contentType, err := t.renderAs(name, content)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client has disconnected
	return nil
}
