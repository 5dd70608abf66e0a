package prose

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

const (
	guidesPath = "/guides"

	lead lang.Message = "Short, practical guides to the API. Every code sample is tested against a running server."
)

// guideGroups are the guides by what readers want to do, in the order in which they are listed.
var guideGroups = []struct {
	title lang.Message
	names []string
}{
	{"Start", []string{"quick-start", "agents"}},
	{"Read the catalog", []string{"paging", "time-travel", "embeddings", "saved-queries", "dashboards", "files"}},
	{"In production", []string{"caching", "quotas", "webhooks"}},
	{"Publish a catalog", []string{"editors"}},
}

// GuideNames are the names of all guides in order.
var GuideNames = func() (all []string) {
	for _, group := range guideGroups {
		all = append(all, group.names...)
	}
	return all
}()

// Patterns are those of the guides and the changelog, without its feed.
var Patterns = []string{guidesPath, guidesPath + "/", guidesPath + ".md", changelogPath, changelogPath + ".md"}

// Guide is a guide to the API.
type Guide struct {
	Name           string // last part of the path
	Title, Summary string
	Text           string // Markdown

	Markdown string // the text with absolute links
	URL      string // where the Markdown is
}

// Path returns the path of the guide's page.
func (g *Guide) Path() string { return guidesPath + "/" + g.Name }

// ReadGuides reads all guides in a language and fills in their placeholders.
func ReadGuides(s page.Service, l lang.Language) (all []*Guide, err error) {
	values := map[string]string{"base": s.PublicURL, "credit": s.Credit}
	for _, name := range []string{"retry.mjs", "retry.py"} { // functions that many programs contain
		values[name] = strings.TrimSpace(embedded("guides/" + name))
	}
	for _, name := range GuideNames {
		g, source := &Guide{Name: name}, embedded("guides/"+name+page.MarkdownSuffix)
		if l != lang.English {
			source, err = insertCode(embedded("guides/"+string(l)+"/"+name+page.MarkdownSuffix), source)
		}
		if err == nil {
			g.Text, err = fill(source, values)
		}
		if err == nil {
			g.Title, g.Summary, err = parseHead(g.Text)
		}
		if err != nil {
			return nil, fmt.Errorf("guide %s in %s: %w", name, l.Name(), err)
		}
		g.URL = s.PublicURL + page.LocalPath(l, g.Path()+page.MarkdownSuffix)
		g.Markdown = strings.TrimSpace(page.AbsoluteLinks(l, s.PublicURL, g.Text)) + "\n"
		all = append(all, g)
	}
	return all, nil
}

var codeBlock = regexp.MustCompile("(?ms)^```[a-z].*?^```$")

// insertCode returns a translation with code. It has only prose, in which {{code}} stands for
// the next code block of the original, so that code exists once.
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

type guideGroup struct {
	Title  string
	Guides []*Guide
}

type guidePage struct {
	Guide, Previous, Next *Guide // Previous and Next may be nil
	Guides                []*Guide
	Content               template.HTML
}

func (p *Pages) addGuides(l lang.Language) {
	all, index := p.guides[l], "# "+l.Text("Guides")+"\n\n"+l.Text(lead)+"\n"
	var groups []guideGroup
	for _, group := range guideGroups {
		from := slices.Index(GuideNames, group.names[0])
		groups = append(groups, guideGroup{l.Text(group.title), all[from : from+len(group.names)]})
	}
	for _, group := range groups {
		index += "\n## " + group.Title + "\n\n"
		for _, one := range group.Guides {
			index += fmt.Sprintf("- [%s](%s)\n  %s\n", one.Title, one.URL, one.Summary)
		}
	}
	for i, one := range all {
		data := guidePage{Guide: one, Guides: all}
		if i > 0 {
			data.Previous = all[i-1]
		}
		if i+1 < len(all) {
			data.Next = all[i+1]
		}
		p.add(l, one.Path(), "guide", one.Markdown, func() (_ any, err error) {
			data.Content, err = renderTranslation(l, one.Text, p.guides[lang.English][i].Text)
			return data, err
		})
	}
	p.add(l, guidesPath, "index", index, func() (any, error) { return groups, nil })
}

// Guides returns all guides in English, in order.
func (p *Pages) Guides() []*Guide { return p.guides[lang.English] }
