package main

import (
	"net/http"
	"strings"

	"palmares/internal/catalog/journal"
	"palmares/internal/notify/atom"
	"palmares/internal/web/guide"
	"palmares/internal/web/workbench"
	"palmares/rest"
)

// registerGuides adds the guides, and what language models read first.
func (p *program) registerGuides(mux *http.ServeMux, api *rest.Handler) error {
	guides, err := guide.New(guide.Config{
		PublicURL: p.settings.PublicURL, ServiceName: p.settings.ServiceName, Credit: p.settings.credit(),
		Sections: []guide.Section{
			{Title: "REST", Links: restLinks(api)},
			{Title: "GraphQL", Links: []guide.Link{
				{Name: "Schema", Path: workbench.SchemaPath, Note: "Every type and field, described. Queries go to /graphql, as POST with JSON or as GET: numbered pages, Relay connections, aggregates, the change journal, and a subscription as server-sent events."},
				{Name: "Explorer", Path: workbench.ExplorerPath, Note: "An editor for people to try queries in."},
			}},
			{Title: "Feeds", Links: []guide.Link{
				{Name: "Changes", Path: atom.Path + "changes.atom", Note: "What changed in the catalog, as Atom."},
				{Name: "Prices", Path: atom.Path + "prices.atom", Note: "Changes of prices, as Atom."},
				{Name: "Retired tools", Path: atom.Path + "cimetiere.atom", Note: "Tools that were retired, as Atom."},
			}},
			{Title: "Events", Links: eventLinks()},
		},
	})
	if err != nil {
		return err
	}
	guides.Register(mux)
	return nil
}

// restLinks are every path, and first of all the document that describes them.
func restLinks(api *rest.Handler) []guide.Link {
	links := []guide.Link{
		{Name: "OpenAPI document", Path: rest.DocumentPath, Note: "Every path, parameter and answer, as OpenAPI 3.0.3."},
		{Name: "Reference", Path: workbench.MarkdownPath, Note: "The same as Markdown; for people at " + workbench.ReferencePath + "."},
	}
	for _, o := range api.Operations() {
		link := guide.Link{Name: o.Path, Path: o.Path, Note: o.Summary + "."}
		if strings.Contains(o.Path, "{") {
			link.Path = rest.DocumentPath // no address by itself
		}
		if o.Keyed {
			link.Note += " Needs an API key."
		}
		links = append(links, link)
	}
	return links
}

func eventLinks() []guide.Link {
	var links []guide.Link
	for _, event := range journal.Events {
		links = append(links, guide.Link{Name: event, Path: journal.SchemasPath + event + ".json", Note: "The JSON Schema of this event, in webhooks and in the journal."})
	}
	return links
}
