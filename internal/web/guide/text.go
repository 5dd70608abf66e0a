package guide

import (
	"fmt"
	"strings"
)

// Section is a part of llms.txt, in the form that llmstxt.org describes.
type Section struct {
	Title string
	Links []Link
}

// Link is a line of it.
type Link struct {
	Name string
	Path string // on this server
	Note string
}

func (g *Guides) link(l Link) string {
	return fmt.Sprintf("- [%s](%s%s): %s\n", l.Name, g.cfg.PublicURL, l.Path, l.Note)
}

// guideLinks lists every guide as Markdown.
func (g *Guides) guideLinks() string {
	var list strings.Builder
	for _, one := range g.all {
		list.WriteString(g.link(Link{one.Title, one.Path() + ".md", one.Summary}))
	}
	return list.String()
}

// indexText is the page of all guides as Markdown.
func (g *Guides) indexText() string {
	return "# Guides\n\n" + lead + "\n\n" + g.guideLinks()
}

// about is what both texts begin with.
func (g *Guides) about() string {
	return fmt.Sprintf(`# %s

> A catalog of tested AI tools: scores, head-to-head comparisons, prices in euros with their history, retired tools, categories, statistics, and review texts for retrieval. Read-only, as JSON, over REST and GraphQL at %s.

- Without a key there are 100 requests a day for each IP address. A free key from %s/account brings 1,000, and opens the embeddings: send it as `+"`Authorization: Bearer YOUR_KEY`"+`.
- Field names and enumerated values are French in part: `+"`comparatifs`"+` are comparisons, `+"`cimetiere`"+` the retired tools, `+"`gratuit`, `freemium` and `payant`"+` the ways of paying.
- Whoever reuses the data shows this line: %s
`, g.cfg.ServiceName, g.cfg.PublicURL, g.cfg.PublicURL, g.cfg.Credit)
}

// llms is the text that language models look for first.
func (g *Guides) llms() string {
	var text strings.Builder
	text.WriteString(g.about())
	text.WriteString("\n## Guides\n\n" + g.guideLinks())
	for _, section := range g.cfg.Sections {
		text.WriteString("\n## " + section.Title + "\n\n")
		for _, link := range section.Links {
			text.WriteString(g.link(link))
		}
	}
	text.WriteString("\n## Optional\n\n")
	text.WriteString(g.link(Link{"Everything in one", llmsFull, "This introduction and all guides."}))
	return text.String()
}

// llmsFull is every guide in one.
func (g *Guides) llmsFull() string {
	parts := []string{g.about()}
	for _, one := range g.all {
		parts = append(parts, strings.TrimSpace(g.asText(one))+"\n")
	}
	return strings.Join(parts, "\n---\n\n")
}

// missingText says that there is no such guide.
func (g *Guides) missingText(guesses []*guide) string {
	text := "# There is no such guide\n\n"
	if len(guesses) > 0 {
		text += "Perhaps you meant:\n\n"
	}
	for _, one := range guesses {
		text += g.link(Link{one.Title, one.Path() + ".md", one.Summary})
	}
	return text + "\nAll guides:\n\n" + g.guideLinks()
}

// asText is a guide to be read anywhere: its links name this server.
func (g *Guides) asText(one *guide) string {
	return strings.ReplaceAll(one.Text, "](/", "]("+g.cfg.PublicURL+"/")
}
