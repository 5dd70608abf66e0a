// Package guide serves the hand-written guides and the changelog as HTML and
// Markdown. Every code block in a guide is run by a test against a real server.
package guide

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
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
	URL      string // where the Markdown is
}

// Path returns the path of the guide's page.
func (g *Guide) Path() string { return root + "/" + g.Name }

// Read reads all guides in a language and fills in their placeholders.
func Read(cfg Config, l lang.Language) ([]*Guide, error) {
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
		text, err := readText(name, l)
		if err != nil {
			return nil, fmt.Errorf("guide %s in %s: %w", name, l.Name(), err)
		}
		g := &Guide{Name: name, Text: fill.Replace(text)}
		if err := g.parseHead(); err != nil {
			return nil, fmt.Errorf("guide %s in %s: %w", name, l.Name(), err)
		}
		g.URL = cfg.PublicURL + page.LocalPath(l, g.Path()+page.MarkdownSuffix)
		g.Markdown = strings.TrimSpace(page.AbsoluteLinks(l, cfg.PublicURL, g.Text)) + "\n"
		all = append(all, g)
	}
	return all, nil
}

// readText returns the text of a guide. A translation has only prose, in which
// {{code}} stands for the next code block of the original, so that code exists once.
func readText(name string, l lang.Language) (string, error) {
	original, err := guideFiles.ReadFile(path.Join("guides", name+page.MarkdownSuffix))
	if err != nil || l == lang.English {
		return string(original), err
	}
	prose, err := guideFiles.ReadFile(path.Join("guides", string(l), name+page.MarkdownSuffix))
	if err != nil {
		return "", err
	}
	return insertCode(string(prose), string(original))
}

var codeBlock = regexp.MustCompile("(?ms)^```[a-z].*?^```$")

func insertCode(prose, original string) (string, error) {
	blocks := codeBlock.FindAllString(original, -1)
	parts := strings.Split(prose, "{{code}}")
	if len(parts) != len(blocks)+1 {
		return "", fmt.Errorf("the translation has %d {{code}} placeholders for %d code blocks", len(parts)-1, len(blocks))
	}
	text := parts[0]
	for i, block := range blocks {
		text += block + parts[i+1]
	}
	return text, nil
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
func (g *Guides) text(l lang.Language, name string, similar []*Guide) string {
	var text strings.Builder
	err := texts.ExecuteTemplate(&text, name, struct {
		lang.Language
		Lead            lang.Message
		Guides, Similar []*Guide
	}{l, lead, g.all[l], similar})
	if err != nil {
		panic(err) // a mistake in the template
	}
	return text.String()
}
