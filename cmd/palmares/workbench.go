package main

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/graph"
	"palmares/internal/web/workbench"
	"palmares/rest"
)

// registerWorkbench adds where people try the API.
func (p *program) registerWorkbench(mux *http.ServeMux, api *rest.Handler) {
	workbench.New(workbench.Config{
		PublicURL: p.settings.PublicURL, ServiceName: p.settings.ServiceName, Credit: p.settings.credit(),
		Schema: schemaText(), Document: rest.DocumentPath,
		Operations: operations(api), Samples: api.Samples, Answers: p.answers, Explain: api.Explain, Key: p.people.portal.Key, Log: p.log,
	}).Register(mux)
}

// schemaText is the schema of GraphQL in one piece.
func schemaText() string {
	var text strings.Builder
	formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatSchema(graph.Schema())
	return definitionEnd.ReplaceAllString(text.String(), "$0\n")
}

// definitionEnd is where a line is left free for the eye.
var definitionEnd = regexp.MustCompile(`(?m)^(\}|scalar .*|\) on .*)\n`)

// operations are those of REST as the workbench knows them: it may not know
// REST itself.
func operations(api *rest.Handler) []workbench.Operation {
	var all []workbench.Operation
	for _, o := range api.Operations() {
		known := workbench.Operation{Path: o.Path, Summary: o.Summary, Details: o.Details, Example: o.Example, Query: o.Query, Keyed: o.Keyed, Parameters: []workbench.Parameter{}}
		for _, p := range o.Parameters {
			known.Parameters = append(known.Parameters, workbench.Parameter(p))
		}
		all = append(all, known)
	}
	return all
}
