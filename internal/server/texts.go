package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/account/billing"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/transport/feeds"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	"palmares/internal/web/page"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/rest"
)

// examplePath returns a path that requires a key, as an example on the account pages.
func examplePath(ctx context.Context, db *store.Store) string {
	slug, err := db.Read.Tool.Query().Where(tool.InEmbeddings(true)).Order(ent.Asc(tool.FieldID)).Limit(1).Select(tool.FieldID).String(ctx)
	if err != nil {
		return "/api/v1/tools"
	}
	return "/api/embeddings/" + slug
}

// planOf returns a plan for pages.
func planOf(plan auth.Plan) page.Plan {
	terms := plan.Terms()
	shown := page.Plan{
		DailyQuota: terms.DailyQuota, Keys: terms.Keys, SavedQueries: terms.SavedQueries, Streams: terms.Streams,
		Downloads: terms.Downloads > 0, Embeddings: terms.Embeddings, Webhooks: terms.Webhooks,
	}
	if plan == auth.Pro {
		shown.MonthlyEuros, shown.Uptime = billing.MonthlyEuros, status.Target
	}
	return shown
}

// panelCharts are the charts of panels that are sorted by another number than their last one.
var panelCharts = map[string]saved.Chart{
	"price-drops":         {Kind: saved.Bar, X: "tool.name", Y: "change"},
	"good-and-affordable": {Kind: saved.Bar, X: "name", Y: "monthlyPrice"},
	"newest-tools":        {Kind: saved.Bar, X: "tool.name", Y: "tool.monthlyPrice"},
}

// panels returns the explorer's dashboard panels, which are saved queries of the
// service.
func panels() (all []saved.BuiltIn) {
	for _, example := range apidocs.Examples {
		if name, isPanel := strings.CutPrefix(example.Name, "panel-"); isPanel {
			all = append(all, saved.BuiltIn{Name: name, Title: example.Title, Description: example.Description, Text: example.Query, Chart: panelCharts[name]})
		}
	}
	return all
}

// limitsText lists the limits of a GraphQL request.
func limitsText(l document.Limits) string {
	return fmt.Sprintf("a body of %d bytes, %d tokens, %d fields, a cost of %d, a response of %d bytes and a duration of %s",
		l.Body, l.Tokens, l.Fields, l.Cost, l.Response, l.Time)
}

// runPublic executes a query for a caller without a key.
func (e *engine) runPublic(ctx context.Context, query string) ([]byte, error) {
	result := e.executor.Execute(auth.WithCaller(ctx, auth.Caller{}), graph.Request{Query: query})
	if problem := result.Problem(); problem != nil {
		return nil, problem
	}
	return result.Data, nil
}

// cost returns the cost of a query, even if it requires a key.
func (e *engine) cost(ctx context.Context, query string, variables map[string]any) (cost, limit int, err error) {
	return e.executor.Cost(auth.WithCaller(ctx, auth.Caller{Plan: auth.Pro}), graph.Request{Query: query, Variables: variables})
}

// schemaText returns the GraphQL schema with a blank line after each
// definition.
func schemaText() string {
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(graph.Schema())
	return definitionEnd.ReplaceAllString(text.String(), "$0\n")
}

var definitionEnd = regexp.MustCompile(`(?m)^(\}|scalar .*|\)( repeatable)? on .*|directive .* on .*)\n`)

// textSections returns the links of llms.txt.
func textSections(api *rest.Handler) []apidocs.Section {
	restLinks := []apidocs.Link{
		{Name: "OpenAPI document", Path: rest.DocumentPath, Note: "Every path, parameter and response, as OpenAPI 3.0.3; as YAML at " + rest.YAMLPath + "."},
		{Name: "Reference", Path: apidocs.MarkdownPath, Note: "The same as Markdown. The web version is at " + apidocs.ReferencePath + "."},
	}
	for _, o := range api.Operations() {
		link := apidocs.Link{Name: o.Path, Path: o.Path, Note: o.Summary + "."}
		if strings.Contains(o.Path, "{") {
			link.Path = rest.DocumentPath // a path template is not a link
		}
		if o.RequiresKey {
			link.Note += " Requires an API key."
		}
		restLinks = append(restLinks, link)
	}
	var eventLinks []apidocs.Link
	for _, event := range journal.SchemaTypes {
		link := apidocs.Link{Name: event, Path: journal.SchemasPath + event + ".json", Note: "JSON Schema of this event, in webhooks and in the change journal."}
		if event == journal.EventsBatch {
			link.Note = "JSON Schema of webhook requests with several events."
		}
		eventLinks = append(eventLinks, link)
	}
	return []apidocs.Section{
		{Title: "REST", Links: restLinks},
		{Title: "GraphQL", Links: []apidocs.Link{
			{Name: "Schema", Path: apidocs.SchemaPath, Note: "All types and fields, with descriptions. Send queries to /graphql, as POST or QUERY with JSON or as GET: numbered pages, Relay connections, aggregates, the change journal, and a subscription as server-sent events."},
			{Name: "Explorer", Path: apidocs.ExplorerPath, Note: "An editor to try queries in the browser."},
		}},
		{Title: "Feeds", Links: []apidocs.Link{
			{Name: "Changes", Path: feeds.Path + "changes.atom", Note: "All changes to the catalog, as Atom."},
			{Name: "Prices", Path: feeds.Path + "prices.atom", Note: "Price changes, as Atom."},
			{Name: "Retired tools", Path: feeds.Path + "cimetiere.atom", Note: "Retired tools, as Atom."},
			{Name: "Changelog", Path: feeds.Path + "changelog.atom", Note: "Changes to the API, as Atom; as Markdown at /changelog.md."},
			{Name: "Incidents", Path: status.FeedPath, Note: "Service incidents, as Atom. The status page is at " + status.Path + "."},
		}},
		{Title: "Events", Links: eventLinks},
		{Title: "About", Links: []apidocs.Link{
			{Name: "Editions", Path: "/en/changes.md", Note: "What each release changed, and a list of all releases. Each has a page, such as /en/editions/1.md."},
			{Name: "About", Path: "/en/about.md", Note: "Who publishes the catalog, and how to contact them."},
			{Name: "How tools are tested", Path: "/en/method.md", Note: "What scores, verifiability and obsolescence mean."},
			{Name: "License", Path: "/en/licence.md", Note: "The data is free to reuse, provided that you show the credit line."},
			{Name: "Plans", Path: "/en/pricing.md", Note: "Quotas and prices."},
			{Name: "Sitemap", Path: site.SitemapPath, Note: "The URLs of all pages, in English and French. Each page is also available as Markdown: add .md to its path."},
		}},
	}
}
