package site

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"palmares/internal/web/page"
)

// followView says how to follow a tool.
type followView struct {
	Tool, RetiredTool *tool
	*tool             `json:"-"` // either of them
}

func (v *followView) prepare(_ context.Context, _ *Site, r *request) error {
	if v.tool = v.Tool; v.tool == nil {
		v.tool = v.RetiredTool
	}
	if v.tool == nil {
		return r.noTool(r.Slug())
	}
	if v.Tool == nil {
		v.Kind = "RetiredTool"
	}
	r.feeds = []page.Feed{toolFeed(r, v.Slug, v.Name)}
	return nil
}

// FeedPath returns the path of the feed of the tool.
func (v *followView) FeedPath() string { return "/tools/" + v.Slug + "/changes.atom" }

// reader is a program that opens a feed.
type reader struct{ Name, URL string }

// Readers returns links that open a feed in a reader.
func (v *followView) Readers(feed string) []reader {
	return []reader{
		{"Feedly", "https://feedly.com/i/subscription/feed/" + url.QueryEscape(feed)},
		{"Inoreader", "https://www.inoreader.com/?add_feed=" + url.QueryEscape(feed)},
	}
}

// ReportURL returns the address to report an error about a page to, with the page and the
// release filled in, or "" if the operator has none.
func (r *request) ReportURL(name string, release int) string {
	contact := r.service.Contact
	if contact == "" || strings.Contains(contact, "://") {
		return contact
	}
	subject := r.lang.Text("Error on the page of %s", name)
	body := r.lang.Text("Page: %s\nEdition: %s\nField (such as price or score): \nError: \n", r.URL(r.path), r.lang.Number(release))
	query := strings.ReplaceAll(url.Values{"subject": {subject}, "body": {strings.ReplaceAll(body, "\n", "\r\n")}}.Encode(), "+", "%20")
	return "mailto:" + url.PathEscape(contact) + "?" + query
}

// Publisher returns the name of the publisher, or that of the service.
func (r *request) Publisher() string { return cmp.Or(r.service.Publisher, r.service.ServiceName) }
