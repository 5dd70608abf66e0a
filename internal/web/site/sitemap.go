package site

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"palmares/graph"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// SitemapPath is the path of the index of all sitemaps.
const SitemapPath = "/sitemap.xml"

const (
	robotsPath   = "/robots.txt"
	sitemapsPath = "/sitemaps/"

	// sitemapItems is how many items a sitemap has, each with a page in both
	// languages: 10,000 URLs.
	sitemapItems = 5_000
)

// sitemap is a file that lists pages.
type sitemap struct {
	name  string
	pages []sitemapPage
}

// sitemapPage is a page with the day of its last change, or "" if that is unknown.
type sitemapPage struct{ path, changed string }

func (s *Site) serveRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	fmt.Fprintf(w, "User-agent: *\nDisallow: /account\nDisallow: /login\nDisallow: /*/account\nDisallow: /*/login\n\nSitemap: %s%s\n", s.PublicURL, SitemapPath)
}

// serveSitemap serves the index and its parts. Each is cached until the next
// release.
func (s *Site) serveSitemap(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	entry, err := s.Cache.Get(s.Visitors.Identify(r), cache.Key{Operation: "sitemap", Variables: name}, s.sitemap(name))
	if err != nil {
		return err
	}
	return entry.Write(w, r)
}

func (s *Site) sitemap(name string) cache.Execute {
	return func(ctx context.Context) (*cache.Entry, int, error) {
		done, err := s.Visitors.Start(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer done()
		ctx, cancel := context.WithTimeout(ctx, graph.DefaultLimits.Time) // as for an operation
		defer cancel()
		newest, err := s.Executor.Newest(ctx)
		if err != nil && problem.Of(err).Code == problem.Internal {
			err = &problem.Problem{Code: problem.Unavailable, Message: graph.ErrUnavailable.Message, Cause: err}
		}
		if err != nil {
			return nil, 0, err
		}
		caching, day := "no-store", ""
		if newest.Info != nil {
			caching, day = page.Caching, newest.Info.FeedDate
		}
		var body bytes.Buffer
		body.WriteString(xml.Header)
		all := s.sitemaps(newest, day)
		if at := slices.IndexFunc(all, func(m sitemap) bool { return m.name == name }); at >= 0 {
			s.writeSitemap(&body, all[at].pages)
		} else if name == "" {
			s.writeIndex(&body, all, day)
		} else {
			return nil, newest.Number(), problem.New(problem.NotFound, "There is no sitemap at this address.")
		}
		header := http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {caching}, "Vary": {"Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"}}
		return cache.NewEntry(body.Bytes(), header), newest.Number(), nil
	}
}

var byName, _ = catalog.OrderNamed("name_asc")

// sitemaps returns all sitemaps: first that of the pages that are not of one item.
// Those of the catalog changed with its release; when the others did is unknown.
func (s *Site) sitemaps(r *catalog.Release, day string) []sitemap {
	var pages, editions, tools, comparisons, retired []sitemapPage
	pages = append(pages, sitemapPage{"/", day})
	for _, e := range page.Registry {
		switch isOfCatalog := slices.ContainsFunc(s.routes, func(rt route) bool { return rt.pattern == e.Path }); {
		case isOfCatalog:
			pages = append(pages, sitemapPage{e.Path, day})
		case !e.Private:
			pages = append(pages, sitemapPage{e.Path, ""})
		}
	}
	for _, c := range r.Categories {
		pages = append(pages, sitemapPage{"/categories/" + c.Slug, day})
	}
	for _, path := range s.SitemapPages {
		pages = append(pages, sitemapPage{path, ""})
	}
	for _, info := range r.All {
		editions = append(editions, sitemapPage{editionPath(strconv.Itoa(info.ID)), info.FeedDate})
	}
	for _, t := range r.Sorted(byName) {
		tools = append(tools, sitemapPage{"/tools/" + t.Slug, t.UpdatedAt})
	}
	for _, c := range r.Comparisons {
		comparisons = append(comparisons, sitemapPage{"/comparatifs/" + c.Slug, c.UpdatedAt})
	}
	for _, t := range r.Sorted(catalog.ByRetirement) {
		retired = append(retired, sitemapPage{"/cimetiere/" + t.Slug, t.RetiredAt})
	}
	all := []sitemap{{"pages.xml", pages}}
	for _, list := range []sitemap{{"editions", editions}, {"tools", tools}, {"comparisons", comparisons}, {"retired", retired}} {
		part := 0
		for pages := range slices.Chunk(list.pages, sitemapItems) {
			part++
			all = append(all, sitemap{fmt.Sprintf("%s-%d.xml", list.name, part), pages})
		}
	}
	return all
}

const sitemapNamespace = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`

func (s *Site) writeIndex(to *bytes.Buffer, all []sitemap, day string) {
	to.WriteString("<sitemapindex " + sitemapNamespace + ">\n")
	for _, m := range all {
		to.WriteString("<sitemap>")
		s.writeLocation(to, sitemapsPath+m.name, day)
		to.WriteString("</sitemap>\n")
	}
	to.WriteString("</sitemapindex>\n")
}

// writeSitemap writes the URLs of pages in all languages. Each refers to all of
// them.
func (s *Site) writeSitemap(to *bytes.Buffer, pages []sitemapPage) {
	to.WriteString("<urlset " + sitemapNamespace + ` xmlns:xhtml="http://www.w3.org/1999/xhtml">` + "\n")
	for _, p := range pages {
		fallback := page.LocalPath(lang.All[0], p.path)
		if p.path == "/" {
			fallback = "/" // chooses by the browser's preference
		}
		for _, l := range lang.All {
			to.WriteString("<url>")
			s.writeLocation(to, page.LocalPath(l, p.path), p.changed)
			for _, other := range lang.All {
				s.writeAlternate(to, string(other), page.LocalPath(other, p.path))
			}
			s.writeAlternate(to, "x-default", fallback)
			to.WriteString("</url>\n")
		}
	}
	to.WriteString("</urlset>\n")
}

func (s *Site) writeLocation(to *bytes.Buffer, path, changed string) {
	to.WriteString("<loc>")
	escape(to, s.PublicURL+path)
	to.WriteString("</loc>")
	if changed != "" {
		to.WriteString("<lastmod>" + changed + "</lastmod>")
	}
}

func (s *Site) writeAlternate(to *bytes.Buffer, language, path string) {
	to.WriteString(`<xhtml:link rel="alternate" hreflang="` + language + `" href="`)
	escape(to, s.PublicURL+path)
	to.WriteString(`"/>`)
}

func escape(to *bytes.Buffer, text string) { _ = xml.EscapeText(to, []byte(text)) } // a buffer accepts everything
