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
	"palmares/internal/core/store"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	"palmares/internal/web/page"
	"palmares/internal/web/status"
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
