package guide

import (
	_ "embed"
	"regexp"
	"strings"
	"time"

	"palmares/internal/core/atomxml"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

// The changelog is a page, Markdown, and an Atom feed of the versions in it.
const (
	changelog = "/changelog"
	FeedPath  = "/feeds/changelog.atom"
)

// changelogText is a copy of CHANGELOG.md, because only files below a package
// can be embedded. A test compares them.
//
//go:generate cp ../../../CHANGELOG.md changelog.md
//go:embed changelog.md
var changelogText string

func (g *Guides) addChangelog(text string) error {
	for _, l := range lang.All {
		g.add(l, changelog, "changelog", text, func() (any, error) { return Render(l, text) })
	}
	feed, err := g.changelogAtom(text)
	g.documents[lang.English][FeedPath] = page.Document{Text: feed}
	return err
}

// version is a version of the API in the changelog.
type version struct{ name, date, text string }

var versionHeading = regexp.MustCompile(`(?m)^## \[([^\]]+)\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$`)

// versions returns the versions with a date, newest first: what is not released
// yet may still change.
func versions(text string) (all []version) {
	found := versionHeading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all = append(all, version{text[at[2]:at[3]], text[at[4]:at[5]], strings.TrimSpace(text[at[1]:end])})
	}
	return all
}

// changelogAtom returns the changelog as an Atom feed.
func (g *Guides) changelogAtom(text string) (*cache.Entry, error) {
	base := g.cfg.PublicURL
	alternate := atomxml.Page(base + lang.English.Path(changelog))
	feed := atomxml.Feed{
		ID: atomxml.Tag(base, "changelog"), Title: atomxml.Text(g.cfg.ServiceName + ": changelog of the API"),
		Links: []atomxml.Link{atomxml.Self(base + FeedPath), alternate}, Author: atomxml.Text(g.cfg.ServiceName),
	}
	for i, v := range versions(text) {
		html, err := Render(lang.English, v.text)
		if err != nil {
			return nil, err
		}
		released, err := time.Parse(time.DateOnly, v.date)
		if err != nil {
			return nil, err
		}
		entry := atomxml.Entry{
			ID: atomxml.Tag(base, "changelog/"+v.name), Title: atomxml.Text(v.name), Updated: atomxml.Time{Time: released},
			Links: []atomxml.Link{alternate}, Content: atomxml.Content{Type: "html", Text: atomxml.Text(html)},
		}
		if feed.Entries = append(feed.Entries, entry); i == 0 {
			feed.Updated = entry.Updated
		}
	}
	return atomxml.NewEntry(feed, page.Caching)
}
