package guide

import (
	"fmt"
	"strings"
)

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

func (g *Guides) links(links ...Link) string {
	var list strings.Builder
	for _, l := range links {
		fmt.Fprintf(&list, "- [%s](%s%s): %s\n", l.Name, g.cfg.PublicURL, l.Path, l.Note)
	}
	return list.String()
}

func (g *Guides) guideLinks(guides []*guide) string {
	var links []Link
	for _, one := range guides {
		links = append(links, Link{one.Title, one.Path() + ".md", one.Summary})
	}
	return g.links(links...)
}

func (g *Guides) indexText() string { return "# Guides\n\n" + lead + "\n\n" + g.guideLinks(g.all) }

func (g *Guides) notFoundText(similar []*guide) string {
	text := "# Guide not found\n\n"
	if len(similar) > 0 {
		text += "Did you mean:\n\n" + g.guideLinks(similar) + "\n"
	}
	return text + "All guides:\n\n" + g.guideLinks(g.all)
}

// absoluteLinks returns Markdown whose links work outside of this server.
func (g *Guides) absoluteLinks(text string) string {
	return strings.ReplaceAll(text, "](/", "]("+g.cfg.PublicURL+"/")
}

const introduction = `# %[1]s

> A catalog of tested AI tools: scores, head-to-head comparisons, prices in euros with their history, retired tools, categories, statistics and review texts for retrieval. Read-only JSON over REST and GraphQL at %[2]s.

- No API key is required for 100 requests per day and IP address. A free key from %[2]s/account allows 1,000 requests per day and gives access to embeddings. Send it as ` + "`Authorization: Bearer YOUR_KEY`" + `.
- Some paths, fields and values are in French: ` + "`comparatifs`" + ` are comparisons, ` + "`cimetiere`" + ` lists retired tools, and ` + "`gratuit`, `freemium` and `payant`" + ` mean free, freemium and paid.
- If you reuse the data, show this credit: %[3]s
`

func (g *Guides) introduction() string {
	return fmt.Sprintf(introduction, g.cfg.ServiceName, g.cfg.PublicURL, g.cfg.Credit)
}

func (g *Guides) llms() string {
	text := g.introduction() + "\n## Guides\n\n" + g.guideLinks(g.all)
	for _, section := range g.cfg.Sections {
		text += "\n## " + section.Title + "\n\n" + g.links(section.Links...)
	}
	return text + "\n## Optional\n\n" + g.links(Link{"Full text", llmsFull, "This introduction and all guides in one file."})
}

func (g *Guides) llmsFull() string {
	parts := []string{g.introduction()}
	for _, one := range g.all {
		parts = append(parts, strings.TrimSpace(g.absoluteLinks(one.Text))+"\n")
	}
	return strings.Join(parts, "\n---\n\n")
}
