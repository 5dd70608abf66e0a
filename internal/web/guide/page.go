package guide

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/web/page"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Assets are the style of the guides.
var Assets = page.MustAssets(assetFiles, "assets")

var pages = page.MustTemplates(templateFiles, "templates", nil)

const policy = page.Plain + "; form-action 'self'"

const lead = "Short, and to be copied from: every snippet here is run by our tests."

type indexPage struct {
	Lead   string
	Guides []*guide
}

type guidePage struct {
	Guide, Before, After *guide // no one before the first, nor after the last
	Guides               []*guide
	Content              template.HTML
}

type missingPage struct{ Near, Guides []*guide }

// content is what the layout shows around a page.
func (g *Guides) content(here string, data any) page.Content {
	return page.Content{
		Service: g.cfg.ServiceName, Credit: g.cfg.Credit, Here: here,
		Head: page.Head{Styles: []string{Assets.Path("guide.css")}}, Data: data,
	}
}

func (g *Guides) addIndex() error {
	html, err := g.pageEntry(root, "index", indexPage{lead, g.all})
	g.add(root, html, g.indexText())
	return err
}

func (g *Guides) addGuide(i int) error {
	one := g.all[i]
	content, err := render(one.Text)
	if err != nil {
		return fmt.Errorf("guide %s: %w", one.Name, err)
	}
	data := guidePage{Guide: one, Guides: g.all, Content: content}
	if i > 0 {
		data.Before = g.all[i-1]
	}
	if i+1 < len(g.all) {
		data.After = g.all[i+1]
	}
	html, err := g.pageEntry(one.Path(), "guide", data)
	g.add(one.Path(), html, g.asText(one))
	return err
}

// add puts a page at its address, and its text there and beside.
func (g *Guides) add(path string, html *cache.Entry, text string) {
	entry := g.textEntry(text, markdown)
	g.answers[path] = answer{html, entry}
	g.answers[path+".md"] = answer{text: entry}
}

func (g *Guides) pageEntry(path, name string, data any) (*cache.Entry, error) {
	content := g.content(path, data)
	content.Markdown = path + ".md"
	body, err := pages.Render(name, content)
	if err != nil {
		return nil, err
	}
	header := header("text/html; charset=utf-8")
	page.Guard(header, policy, g.secure())
	return cache.NewEntry(body, header), nil
}

func (g *Guides) textEntry(text, kind string) *cache.Entry {
	header := header(kind)
	header.Set("X-Content-Type-Options", "nosniff")
	return cache.NewEntry([]byte(text), header)
}

func header(kind string) http.Header {
	return http.Header{
		"Content-Type":  {kind},
		"Cache-Control": {caching},
		"Vary":          {"Accept, Accept-Encoding"},
	}
}

// secure tells whether we are reached over https.
func (g *Guides) secure() bool { return strings.HasPrefix(g.cfg.PublicURL, "https:") }
