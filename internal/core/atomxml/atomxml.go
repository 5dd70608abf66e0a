// Package atomxml writes Atom feeds (RFC 4287).
package atomxml

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
	"time"

	"palmares/internal/core/cache"
)

// Feed is an Atom feed, with the elements that the service uses, and those of RFC 5005.
type Feed struct {
	XMLName   xml.Name  `xml:"http://www.w3.org/2005/Atom feed"`
	Lang      string    `xml:"xml:lang,attr,omitempty"`
	History   string    `xml:"xmlns:fh,attr,omitempty"` // HistoryNamespace, with Archive
	Archive   *struct{} `xml:"fh:archive"`
	ID        string    `xml:"id"`
	Title     Text      `xml:"title"`
	Updated   Time      `xml:"updated"`
	Links     []Link    `xml:"link"`
	Author    Text      `xml:"author>name"`
	AuthorURI string    `xml:"author>uri,omitempty"`
	Rights    Text      `xml:"rights,omitempty"`
	Entries   []Entry   `xml:"entry"`
}

// HistoryNamespace is that of the elements of RFC 5005.
const HistoryNamespace = "http://purl.org/syndication/history/1.0"

// Link is a link of a feed or an entry.
type Link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

// Self returns the link of a feed to itself.
func Self(address string) Link { return Link{"self", mediaType, address} }

// Other returns the link of a feed to another document of the feed.
func Other(rel, address string) Link { return Link{rel, mediaType, address} }

// Page returns the link to the HTML page about a feed or an entry.
func Page(address string) Link { return Link{"alternate", "text/html", address} }

// Entry is an entry of a feed.
type Entry struct {
	ID       string    `xml:"id"`
	Title    Text      `xml:"title"`
	Updated  Time      `xml:"updated"`
	Category *Category `xml:"category"`
	Links    []Link    `xml:"link"`
	Content  Content   `xml:"content"`
}

// Category is the category of an entry.
type Category struct {
	Term Text `xml:"term,attr"`
}

// Content is the content of an entry, of the type "text" or "html".
type Content struct {
	Type string `xml:"type,attr"`
	Text Text   `xml:",chardata"`
}

// Text is a string that is written without characters that XML 1.0 does not allow.
type Text string

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) { return []byte(clean(string(t))), nil }

// Time is written in UTC. The zero value is written as 1970, because a feed must
// have a time even if it has no entries.
type Time struct{ time.Time }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		t.Time = time.Unix(0, 0)
	}
	return []byte(t.UTC().Format(time.RFC3339)), nil
}

const mediaType = "application/atom+xml"

// NewEntry returns a feed as a response. It was updated when its first entry was.
func NewEntry(f Feed, cacheControl string) (*cache.Entry, error) {
	if len(f.Entries) > 0 {
		f.Updated = f.Entries[0].Updated
	}
	out := bytes.NewBufferString(xml.Header)
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(f); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	header := http.Header{
		"Content-Type":           {mediaType + "; charset=utf-8"},
		"Cache-Control":          {cacheControl},
		"Vary":                   {"Accept-Encoding"},
		"X-Content-Type-Options": {"nosniff"},
	}
	if !f.Updated.IsZero() {
		header.Set("Last-Modified", f.Updated.UTC().Format(http.TimeFormat))
	}
	return cache.NewEntry(out.Bytes(), header), nil
}

// Tag returns a permanent, globally unique tag URI (RFC 4151) for a name at a public
// URL.
func Tag(publicURL, name string) string {
	host := "localhost"
	if u, err := url.Parse(publicURL); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		host = u.Hostname()
	}
	return "tag:" + host + ",2026:" + name
}

// clean removes characters that XML 1.0 does not allow.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}
