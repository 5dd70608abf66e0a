package atom

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strings"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

// The elements of RFC 4287 that we use, in the order they are written.
type document struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Links   []link   `xml:"link"`
	Author  author   `xml:"author"`
	Rights  string   `xml:"rights,omitempty"`
	Entries []entry  `xml:"entry"`
}

type author struct {
	Name string `xml:"name"`
	URI  string `xml:"uri,omitempty"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type entry struct {
	ID       string    `xml:"id"`
	Title    string    `xml:"title"`
	Updated  string    `xml:"updated"`
	Category *category `xml:"category"`
	Links    []link    `xml:"link"`
	Content  content   `xml:"content"`
}

type category struct {
	Term string `xml:"term,attr"`
}

type content struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

// document writes a feed.
func (h *Handler) document(f feed, events []*journal.Event, tools map[string]*ent.Tool) ([]byte, error) {
	d := document{
		ID: h.tag("feeds/" + f.name), Title: clean(h.config.ServiceName + ": " + f.title), Updated: moment(time.Unix(0, 0)), // of a feed that never changed
		Links: []link{
			{Rel: "self", Type: "application/atom+xml", Href: h.config.PublicURL + Path + f.name},
			{Rel: "alternate", Href: h.config.PublicURL + "/"},
		},
		Author: author{Name: clean(h.config.ServiceName), URI: h.config.PublicURL},
		Rights: clean(h.config.Credit),
	}
	if len(events) > 0 {
		d.Updated = moment(events[0].At)
	}
	for _, event := range events {
		var known *ent.Tool
		if event.AboutTool() { // a comparison may have a tool's slug
			known = tools[event.Slug]
		}
		d.Entries = append(d.Entries, h.entryOf(event, known))
	}
	var out bytes.Buffer
	out.WriteString(xml.Header)
	encoder := xml.NewEncoder(&out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (h *Handler) entryOf(event *journal.Event, known *ent.Tool) entry {
	told := describe(event, known)
	e := entry{
		ID: h.tag(event.ID()), Title: clean(strings.Join(strings.Fields(told.title), " ")), Updated: moment(event.At),
		Content: content{Type: "text", Text: clean(strings.Join(told.lines, "\n"))},
	}
	if event.Category != "" {
		e.Category = &category{Term: clean(event.Category)}
	}
	if isPage(told.page) {
		e.Links = []link{{Rel: "alternate", Href: iri(clean(told.page))}}
	}
	return e
}

// tag is a name that nobody else can give, and that never changes: RFC 4151.
func (h *Handler) tag(name string) string {
	host := "localhost"
	if u, err := url.Parse(h.config.PublicURL); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		host = u.Hostname()
	}
	return "tag:" + host + ",2026:" + name
}

func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// isPage keeps links to what a reader may open.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// clean drops what XML 1.0 cannot hold in any way.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}
