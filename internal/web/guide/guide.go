package guide

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed guides/*.md
var files embed.FS

// order is how the guides are read, one after the other.
var order = []string{"quick-start", "paging", "caching", "quotas", "embeddings", "webhooks", "dashboards"}

// Names are the guides' names, in their order.
func Names() []string { return slices.Clone(order) }

// guide is one of them, as it is read on this server.
type guide struct {
	Name    string // in the address
	Title   string
	Summary string // its first paragraph
	Text    string // Markdown, with our own address in it
}

// Path is where its page is.
func (g *guide) Path() string { return root + "/" + g.Name }

// read takes every guide in, with this server's own words for what only a
// server knows.
func read(cfg Config) ([]*guide, error) {
	fill := strings.NewReplacer("{{base}}", cfg.PublicURL, "{{credit}}", cfg.Credit)
	var all []*guide
	for _, name := range order {
		text, err := files.ReadFile(path.Join("guides", name+".md"))
		if err != nil {
			return nil, err
		}
		g := &guide{Name: name, Text: fill.Replace(string(text))}
		if err := g.open(); err != nil {
			return nil, fmt.Errorf("guide %s: %w", name, err)
		}
		all = append(all, g)
	}
	return all, nil
}

// open finds out what a guide is called and about.
func (g *guide) open() error {
	title, rest, _ := strings.Cut(g.Text, "\n")
	g.Title = strings.TrimPrefix(title, "# ")
	g.Summary, _, _ = strings.Cut(strings.TrimLeft(rest, "\n"), "\n")
	switch {
	case g.Title == title || g.Title == "":
		return errors.New("its first line is no title")
	case g.Summary == "" || strings.HasPrefix(g.Summary, "#"):
		return errors.New("it does not begin with what it is about")
	case strings.Contains(g.Text, "{{"):
		return errors.New("it has a placeholder that nobody fills")
	}
	return nil
}
