package page

import (
	"slices"
	"strings"

	"palmares/internal/core/lang"
)

// Entry is a page that visitors find from anywhere: in the menu or the foot of all pages, in
// suggestions and, unless it is private, in the sitemap.
type Entry struct {
	Path    string
	Name    lang.Message
	Foot    string       // heading of its list in the foot, or ""
	Menu    lang.Message // its name in the menu, or ""
	AsOf    bool         // it exists as of every release
	Private bool
}

// The headings of the lists in the foot, in English.
const catalog, developers, about = "Catalog", "Developers", "About"

// Registry lists these pages. To add one, add a row.
var Registry = []Entry{
	{Path: "/tools", Name: "Tools", Foot: catalog, Menu: "Tools", AsOf: true},
	{Path: "/comparatifs", Name: "Comparisons", Foot: catalog, Menu: "Comparisons", AsOf: true},
	{Path: "/compare", Name: "Compare tools"},
	{Path: "/categories", Name: "Categories", Foot: catalog, Menu: "Categories", AsOf: true},
	{Path: "/prices", Name: "Price changes", Foot: catalog},
	{Path: "/cimetiere", Name: "Graveyard", Foot: catalog, AsOf: true},
	{Path: "/changes", Name: "Changes", Foot: catalog, Menu: "Changes"},
	{Path: "/trends", Name: "Trends", Menu: "Trends"},
	{Path: "/guides", Name: "Guides", Foot: developers, Menu: "Guides"},
	{Path: "/docs", Name: "API reference", Foot: developers, Menu: "API"},
	{Path: "/explorer", Name: "GraphQL explorer", Foot: developers, Menu: "Explorer"},
	{Path: "/q", Name: "Saved queries", Foot: developers},
	{Path: "/files", Name: "Files", Foot: developers},
	{Path: "/changelog", Name: "Changelog", Foot: developers},
	{Path: "/about", Name: "About and legal notice", Foot: about},
	{Path: "/method", Name: "How we test", Foot: about},
	{Path: "/pricing", Name: "Plans", Foot: about},
	{Path: "/licence", Name: "License", Foot: about},
	{Path: "/terms", Name: "Terms", Foot: about},
	{Path: "/privacy", Name: "Privacy", Foot: about},
	{Path: "/contact", Name: "Contact", Foot: about},
	{Path: "/status", Name: "Status", Foot: about},
	{Path: "/account", Name: "Account", Private: true},
	{Path: "/login", Name: "Sign in", Private: true},
}

// sections are the first parts of the paths of all pages.
var sections = func() []string {
	all := []string{"", "index", "search", "comparisons", "graveyard", "editions", "releases", "logout"}
	for _, e := range Registry {
		all = append(all, e.Path[1:])
	}
	return all
}()

// Menu returns the pages in the menu.
func (c Content) Menu() (all []Suggestion) {
	for _, e := range Registry {
		if e.Menu != "" {
			all = append(all, Suggestion{Path: e.Path, Name: c.Language.Text(e.Menu)})
		}
	}
	return all
}

// Foot returns the pages of a list in the foot.
func (c Content) Foot(heading string) (all []Suggestion) {
	for _, e := range Registry {
		if e.Foot == heading {
			all = append(all, Suggestion{Path: c.CatalogPath(e.Path), Name: c.Language.Text(e.Name)})
		}
	}
	return all
}

// CatalogPath returns the path of a page of the catalog, as of the release that
// the page shows.
func (c Content) CatalogPath(path string) string {
	if c.AsOf == nil || path != "/" && !slices.ContainsFunc(Registry, func(e Entry) bool { return e.AsOf && e.Path == path }) {
		return path
	}
	return path + "?" + c.AsOf.Query
}

// Section reports whether the page is at path or below it. Those that compare tools are part of
// the comparisons.
func (c Content) Section(path string) bool {
	at := c.Path
	if _, rest, found := strings.Cut(at, "/compare"); found && (rest == "" || rest[0] == '/') {
		at = "/comparatifs"
	} else if strings.HasPrefix(at, "/editions/") {
		at = "/changes"
	}
	return at == path || strings.HasPrefix(at, path+"/")
}
