// Package page is what all pages for people look like: one layout, one style,
// their assets, and what browsers may do with them. What stands on a page is
// the business of whoever shows it.
package page

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
)

//go:embed templates
var layouts embed.FS

// Content is what the layout shows around a page's own.
type Content struct {
	Service, Credit string
	Person          string // the address of who is signed in
	Here            string // the page's path, for the menus
	Notice          string // what was just done
	Wrong           string // what is wrong with the form
	Markdown        string // where the same is to be had as Markdown
	Head            Head
	Data            any
}

// Head is what a page needs beside the style of all.
type Head struct {
	Styles, Scripts []string // addresses
	Wide            bool     // it takes the whole window
}

// Section tells whether a page belongs to a part of the menu.
func (c Content) Section(path string) bool {
	return c.Here == path || strings.HasPrefix(c.Here, path+"/")
}

// item is a line of a menu.
type item struct {
	Path, Label string
	Current     bool
}

func menu(c Content, path, label string) item { return item{path, label, c.Section(path)} }

// Templates are pages by name, each within the layout.
type Templates map[string]*template.Template

// MustTemplates reads every page of an embedded folder, with the parts that
// pages share, if it has a folder of them.
func MustTemplates(from fs.FS, folder string, funcs template.FuncMap) Templates {
	all := template.FuncMap{"asset": Own.Path, "count": Thousands, "menu": menu}
	maps.Copy(all, funcs)
	layout := template.Must(template.New("layout.html").Funcs(all).ParseFS(layouts, "templates/*.html"))
	if parts, _ := fs.Glob(from, path.Join(folder, "parts", "*.html")); parts != nil {
		template.Must(layout.ParseFS(from, parts...))
	}
	files, err := fs.ReadDir(from, folder)
	if err != nil {
		panic(err) // it is embedded
	}
	pages := Templates{}
	for _, file := range files {
		name, isPage := strings.CutSuffix(file.Name(), ".html")
		if !isPage {
			continue
		}
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(from, path.Join(folder, file.Name())))
	}
	return pages
}

// Render is a whole page.
func (t Templates) Render(name string, content Content) ([]byte, error) {
	var body bytes.Buffer
	err := t[name].ExecuteTemplate(&body, "layout.html", content)
	return body.Bytes(), err
}

// Write renders before it answers, so that a page is whole or not at all.
func (t Templates) Write(w http.ResponseWriter, status int, name string, content Content) error {
	body, err := t.Render(name, content)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // whoever went away needs no page
	return nil
}
