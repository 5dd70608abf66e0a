package prose

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
	changelogPath = "/changelog"
	FeedPath      = "/feeds/changelog.atom"
)

// changelog is a copy of CHANGELOG.md, because only files below a package can be embedded. A
// test compares them.
//
//go:generate cp ../../../CHANGELOG.md changelog.md
//go:embed changelog.md
var changelog string

// versionHeading matches versions with a date: what is not released yet may still change.
var versionHeading = regexp.MustCompile(`(?m)^## \[([^\]]+)\](?: - ([0-9]{4}-[0-9]{2}-[0-9]{2}))?$`)

// changelogFeed returns a changelog as an Atom feed, newest versions first.
func (p *Pages) changelogFeed(text string) (*cache.Entry, error) {
	alternate := atomxml.Page(p.PublicURL + lang.English.Path(changelogPath))
	feed := atomxml.Feed{
		ID: atomxml.Tag(p.PublicURL, "changelog"), Title: atomxml.Text(p.ServiceName + ": changelog of the API"),
		Links: []atomxml.Link{atomxml.Self(p.PublicURL + FeedPath), alternate}, Author: atomxml.Text(p.ServiceName),
	}
	parts := versionHeading.Split(text, -1)[1:]
	for i, version := range versionHeading.FindAllStringSubmatch(text, -1) {
		released, err := time.Parse(time.DateOnly, version[2])
		if err != nil {
			continue
		}
		html, err := Render(lang.English, strings.TrimSpace(parts[i]))
		if err != nil {
			return nil, err
		}
		feed.Entries = append(feed.Entries, atomxml.Entry{
			ID: atomxml.Tag(p.PublicURL, "changelog/"+version[1]), Title: atomxml.Text(version[1]), Updated: atomxml.Time{Time: released},
			Links: []atomxml.Link{alternate}, Content: atomxml.Content{Type: "html", Text: atomxml.Text(html)},
		})
	}
	return atomxml.NewEntry(feed, page.Caching)
}
