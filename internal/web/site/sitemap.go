package site

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// SitemapPath is the path of the index of all sitemaps.
const SitemapPath = "/sitemap.xml"

const (
	sitemapsPath = "/sitemaps/"

	// sitemapItems is how many items a sitemap has, each with a page in both
	// languages: 10,000 URLs.
	sitemapItems = 5_000
	// itemsPerRead is the limit in the operations.
	itemsPerRead = 200
)

// sitemapList is a list of the catalog, whose items have pages.
type sitemapList struct {
	name      string // of its sitemaps
	operation string
	path      string // of an item, before its slug
}

var sitemapLists = []sitemapList{
	{"tools", "sitemapTools", "/tools/"},
	{"comparisons", "sitemapComparisons", "/comparatifs/"},
	{"retired", "sitemapRetired", "/cimetiere/"},
}

func (s *Site) serveRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	fmt.Fprintf(w, "User-agent: *\nDisallow: /account\nDisallow: /login\nDisallow: /*/account\nDisallow: /*/login\n\nSitemap: %s%s\n", s.PublicURL, SitemapPath)
}

// serveSitemap serves the index and its parts. Each is cached until the next
// release.
func (s *Site) serveSitemap(w http.ResponseWriter, r *http.Request) {
	err := page.CheckMethod(w, r)
	if err == nil {
		var entry cache.Response
		if entry, err = s.Cache.Get(s.withVisitor(r), cache.Key{Operation: "sitemap", Variables: r.PathValue("name")}, s.sitemap(r.PathValue("name"))); err == nil {
			err = entry.Write(w, r)
		}
	}
	if err != nil && r.Context().Err() == nil {
		w.Header().Set("Cache-Control", "no-store")
		problem.Write(w, problem.Of(err))
	}
}

func (s *Site) sitemap(name string) cache.Execute {
	return func(ctx context.Context) (*cache.Entry, int, error) {
		release, err := s.limiter.acquire(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer release()
		response := s.Executor.Execute(ctx, graph.Request{Operation: s.operations["sitemap"]})
		var catalog sitemapCatalog
		if err := response.Decode(&catalog); err != nil {
			return nil, response.Newest, err
		}
		catalog.day = response.UpdatedAt
		var body bytes.Buffer
		body.WriteString(xml.Header)
		if err := s.writeSitemap(ctx, &body, name, &catalog); err != nil {
			return nil, response.Newest, err
		}
		caching := cacheControl
		if response.Release == 0 {
			caching = "no-store"
		}
		header := http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {caching}, "Vary": {"Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"}}
		return cache.NewEntry(body.Bytes(), header), response.Newest, nil
	}
}

type sitemapCatalog struct {
	Stats      struct{ ToolsTotal, ToolsRetired, ComparisonsTotal int }
	Categories []category
	day        string // of the release, or ""
}

// parts returns how many sitemaps a list has.
func (c *sitemapCatalog) parts(list sitemapList) int {
	count := map[string]int{"tools": c.Stats.ToolsTotal, "retired": c.Stats.ToolsRetired, "comparisons": c.Stats.ComparisonsTotal}[list.name]
	return (count + sitemapItems - 1) / sitemapItems
}

func (s *Site) writeSitemap(ctx context.Context, to *bytes.Buffer, name string, catalog *sitemapCatalog) error {
	switch name {
	case "":
		s.writeIndex(to, catalog)
		return nil
	case "pages.xml":
		s.writePages(to, catalog)
		return nil
	}
	for _, list := range sitemapLists {
		digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".xml"), list.name+"-")
		part, err := strconv.Atoi(digits)
		if ok && err == nil && part >= 1 && part <= catalog.parts(list) && name == fmt.Sprintf("%s-%d.xml", list.name, part) {
			return s.writeItems(ctx, to, list, part)
		}
	}
	return problem.New(problem.NotFound, "There is no sitemap at this address.")
}

const sitemapNamespace = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`

func (s *Site) writeIndex(to *bytes.Buffer, catalog *sitemapCatalog) {
	to.WriteString("<sitemapindex " + sitemapNamespace + ">\n")
	write := func(name string) {
		to.WriteString("<sitemap><loc>")
		escape(to, s.PublicURL+sitemapsPath+name)
		to.WriteString("</loc>")
		writeChanged(to, catalog.day)
		to.WriteString("</sitemap>\n")
	}
	write("pages.xml")
	for _, list := range sitemapLists {
		for part := range catalog.parts(list) {
			write(fmt.Sprintf("%s-%d.xml", list.name, part+1))
		}
	}
	to.WriteString("</sitemapindex>\n")
}

// writePages writes all pages that are not of one item. Those of the catalog
// changed with its release; when the others did is unknown.
func (s *Site) writePages(to *bytes.Buffer, catalog *sitemapCatalog) {
	openSitemap(to)
	for _, route := range s.routes {
		if len(route.pathParams()) == 0 && route.name != "search" { // whose results search engines leave out
			s.writePage(to, route.pathOf(nil), catalog.day)
		}
	}
	for _, c := range catalog.Categories {
		s.writePage(to, "/categories/"+c.Slug, catalog.day)
	}
	for _, path := range s.SitemapPages {
		s.writePage(to, path, "")
	}
	to.WriteString("</urlset>\n")
}

func (s *Site) writeItems(ctx context.Context, to *bytes.Buffer, list sitemapList, part int) error {
	openSitemap(to)
	first := (part-1)*sitemapItems/itemsPerRead + 1
	for number := first; number < first+sitemapItems/itemsPerRead; number++ {
		var result struct {
			Pages struct {
				Items []struct{ Slug, Changed string }
				Meta  struct{ Pages int }
			}
		}
		if err := s.execute(ctx, graph.AsOf{}, list.operation, map[string]any{"page": number}, &result); err != nil {
			return err
		}
		for _, item := range result.Pages.Items {
			s.writePage(to, list.path+item.Slug, item.Changed)
		}
		if number >= result.Pages.Meta.Pages {
			break
		}
	}
	to.WriteString("</urlset>\n")
	return nil
}

func openSitemap(to *bytes.Buffer) {
	to.WriteString("<urlset " + sitemapNamespace + ` xmlns:xhtml="http://www.w3.org/1999/xhtml">` + "\n")
}

// writePage writes the URLs of a page in all languages. Each refers to all of
// them.
func (s *Site) writePage(to *bytes.Buffer, path, changed string) {
	fallback := page.LocalPath(lang.All[0], path)
	if path == "/" {
		fallback = "/" // chooses by the browser's preference
	}
	for _, l := range lang.All {
		to.WriteString("<url><loc>")
		escape(to, s.PublicURL+page.LocalPath(l, path))
		to.WriteString("</loc>")
		writeChanged(to, changed)
		for _, other := range lang.All {
			s.writeAlternate(to, string(other), page.LocalPath(other, path))
		}
		s.writeAlternate(to, "x-default", fallback)
		to.WriteString("</url>\n")
	}
}

func (s *Site) writeAlternate(to *bytes.Buffer, language, path string) {
	to.WriteString(`<xhtml:link rel="alternate" hreflang="` + language + `" href="`)
	escape(to, s.PublicURL+path)
	to.WriteString(`"/>`)
}

func writeChanged(to *bytes.Buffer, day string) {
	if day != "" {
		to.WriteString("<lastmod>" + day + "</lastmod>")
	}
}

func escape(to *bytes.Buffer, text string) { _ = xml.EscapeText(to, []byte(text)) } // a buffer accepts everything
