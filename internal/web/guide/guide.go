// Package guide serves the hand-written guides and the changelog as HTML and
// Markdown. Every code block in a guide is run by a test against a real server.
package guide

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"
)

//go:embed guides
var guideFiles embed.FS

// order is the order in which guides are listed.
var order = []string{"quick-start", "paging", "caching", "time-travel", "quotas", "embeddings", "webhooks", "dashboards", "files", "saved-queries", "agents", "editors"}

// Names returns the names of all guides in order.
func Names() []string { return slices.Clone(order) }

// Guide is a guide to the API.
type Guide struct {
	Name    string // last part of the path
	Title   string
	Summary string // first paragraph
	Text    string // Markdown

	Markdown string // the text with absolute links
	URL      string // of the Markdown
}

// Path returns the path of the guide's page.
func (g *Guide) Path() string { return root + "/" + g.Name }

// Read reads all guides and fills in their placeholders.
func Read(cfg Config) ([]*Guide, error) {
	placeholders := []string{"{{base}}", cfg.PublicURL, "{{credit}}", cfg.Credit}
	for _, name := range []string{"retry.mjs", "retry.py"} { // functions that many programs contain
		text, err := guideFiles.ReadFile(path.Join("guides", name))
		if err != nil {
			return nil, err
		}
		placeholders = append(placeholders, "{{"+name+"}}", strings.TrimSpace(string(text)))
	}
	fill := strings.NewReplacer(placeholders...)
	var all []*Guide
	for _, name := range order {
		text, err := guideFiles.ReadFile(path.Join("guides", name+".md"))
		if err != nil {
			return nil, err
		}
		g := &Guide{Name: name, Text: fill.Replace(string(text))}
		if err := g.parseHead(); err != nil {
			return nil, fmt.Errorf("guide %s: %w", name, err)
		}
		g.URL = cfg.PublicURL + g.Path() + ".md"
		g.Markdown = strings.TrimSpace(strings.ReplaceAll(g.Text, "](/", "]("+cfg.PublicURL+"/")) + "\n"
		all = append(all, g)
	}
	return all, nil
}

func (g *Guide) parseHead() error {
	title, rest, _ := strings.Cut(g.Text, "\n")
	g.Title = strings.TrimPrefix(title, "# ")
	g.Summary, _, _ = strings.Cut(strings.TrimLeft(rest, "\n"), "\n")
	switch {
	case g.Title == title || g.Title == "":
		return errors.New("the first line must be a title")
	case g.Summary == "" || strings.HasPrefix(g.Summary, "#"):
		return errors.New("a summary must follow the title")
	case strings.Contains(g.Text, "{{"):
		return errors.New("unknown placeholder")
	}
	return nil
}

// Info is the info string of a code block: the language, the file to save it as,
// and for programs that do not end, the output to wait for.
type Info struct {
	Language string
	Name     string // file name; for an event in JSON, its type
	Until    string
}

// ParseInfo parses the text after the fence of a code block, for example
// "js receiver.mjs" or "sh until=listening".
func ParseInfo(text string) (info Info) {
	for i, word := range strings.Fields(text) {
		until, ok := strings.CutPrefix(word, "until=")
		switch {
		case i == 0:
			info.Language = word
		case ok:
			info.Until = until
		default:
			info.Name = word
		}
	}
	return info
}

// IsFile reports whether the block is the content of a settings file.
func (i Info) IsFile() bool { return i.Language == "json" && strings.HasSuffix(i.Name, ".json") }

// Runs reports whether the block is code to run and not sample output.
func (i Info) Runs() bool { return i.Language != "json" && i.Language != "text" }

var texts = template.Must(template.ParseFS(files, "templates/texts.md"))

// text returns one of the texts made from the guides.
func (g *Guides) text(name string, similar []*Guide) string {
	var text strings.Builder
	err := texts.ExecuteTemplate(&text, name, struct {
		Config
		Lead            string
		Guides, Similar []*Guide
	}{g.cfg, lead, g.all, similar})
	if err != nil {
		panic(err) // a mistake in the template
	}
	return text.String()
}
