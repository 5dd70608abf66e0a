// Package guide serves the hand-written guides and the changelog as HTML and
// Markdown, and the llms.txt files made from the guides. Every code block in a guide is run by a test
// against a real server.
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

//go:embed guides/*.md
var guideFiles embed.FS

// order is the order in which guides are listed.
var order = []string{"quick-start", "paging", "caching", "time-travel", "quotas", "embeddings", "webhooks", "dashboards", "saved-queries"}

// Names returns the names of all guides in order.
func Names() []string { return slices.Clone(order) }

type guide struct {
	Name    string // last part of the path
	Title   string
	Summary string // first paragraph
	Text    string // Markdown

	Markdown string // the text with links that work outside of this server
	URL      string // of that
}

// Path returns the path of the guide's page.
func (g *guide) Path() string { return root + "/" + g.Name }

// read reads all guides and fills in their placeholders.
func read(cfg Config) ([]*guide, error) {
	fill := strings.NewReplacer("{{base}}", cfg.PublicURL, "{{credit}}", cfg.Credit)
	var all []*guide
	for _, name := range order {
		text, err := guideFiles.ReadFile(path.Join("guides", name+".md"))
		if err != nil {
			return nil, err
		}
		g := &guide{Name: name, Text: fill.Replace(string(text))}
		if err := g.parseHead(); err != nil {
			return nil, fmt.Errorf("guide %s: %w", name, err)
		}
		g.URL = cfg.PublicURL + g.Path() + ".md"
		g.Markdown = strings.TrimSpace(strings.ReplaceAll(g.Text, "](/", "]("+cfg.PublicURL+"/")) + "\n"
		all = append(all, g)
	}
	return all, nil
}

func (g *guide) parseHead() error {
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
	Name     string // file name; for JSON that no command prints, the event type
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

// Runs reports whether the block is code to run and not sample output.
func (i Info) Runs() bool { return i.Language != "json" && i.Language != "text" }

// Section is a section of llms.txt (see llmstxt.org).
type Section struct {
	Title string
	Links []Link
}

// Link is an entry of a section.
type Link struct {
	Name string
	Path string // on this server
	Note string
}

var texts = template.Must(template.ParseFS(files, "templates/texts.md"))

// text returns one of the texts made from the guides.
func (g *Guides) text(name string, similar []*guide) string {
	var text strings.Builder
	err := texts.ExecuteTemplate(&text, name, struct {
		Config
		Lead            string
		Guides, Similar []*guide
	}{g.cfg, lead, g.all, similar})
	if err != nil {
		panic(err) // a mistake in the template
	}
	return text.String()
}
