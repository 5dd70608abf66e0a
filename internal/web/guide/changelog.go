package guide

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

// The changelog is a page, Markdown, and an Atom feed of the versions in it.
const (
	changelog     = "/changelog"
	changelogFeed = "/feeds/changelog.atom"
)

// changelogText is a copy of CHANGELOG.md, because only files below a package
// can be embedded. A test compares them.
//
//go:generate cp ../../../CHANGELOG.md changelog.md
//go:embed changelog.md
var changelogText string

func (g *Guides) addChangelog(text string) error {
	content, err := Render(lang.English, text)
	if err != nil {
		return fmt.Errorf("changelog: %w", err)
	}
	if err := g.add(changelog, "changelog", content, text); err != nil {
		return err
	}
	feed, err := g.changelogAtom(text)
	g.documents[lang.English][changelogFeed] = document{text: cache.NewEntry(feed, http.Header{
		"Content-Type": {"application/atom+xml; charset=utf-8"}, "Cache-Control": {caching}, "Vary": {"Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"},
	})}
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

type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Links   []atomLink  `xml:"link"`
		Author  string      `xml:"author>name"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Type string `xml:"type,attr"`
		Href string `xml:"href,attr"`
	}
	atomEntry struct {
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Updated string      `xml:"updated"`
		Link    atomLink    `xml:"link"`
		Content atomContent `xml:"content"`
	}
	atomContent struct {
		Type string `xml:"type,attr"`
		HTML string `xml:",chardata"`
	}
)

// changelogAtom returns the changelog as an Atom feed.
func (g *Guides) changelogAtom(text string) ([]byte, error) {
	base := g.cfg.PublicURL
	alternate := atomLink{"alternate", "text/html", base + page.LocalPath(lang.English, changelog)}
	feed := atomFeed{
		ID: g.tag("changelog"), Title: g.cfg.ServiceName + ": changelog of the API", Updated: "1970-01-01T00:00:00Z",
		Links: []atomLink{{"self", "application/atom+xml", base + changelogFeed}, alternate}, Author: g.cfg.ServiceName,
	}
	for i, v := range versions(text) {
		html, err := Render(lang.English, v.text)
		if err != nil {
			return nil, err
		}
		entry := atomEntry{ID: g.tag("changelog/" + v.name), Title: v.name, Updated: v.date + "T00:00:00Z", Link: alternate, Content: atomContent{"html", string(html)}}
		if feed.Entries = append(feed.Entries, entry); i == 0 {
			feed.Updated = entry.Updated
		}
	}
	out := bytes.NewBufferString(xml.Header)
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	err := encoder.Encode(feed)
	return out.Bytes(), err
}

// tag returns a permanent, globally unique identifier (RFC 4151).
func (g *Guides) tag(name string) string {
	host := "localhost"
	if u, err := url.Parse(g.cfg.PublicURL); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		host = u.Hostname()
	}
	return "tag:" + host + ",2026:" + name
}
