package rest

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// exampleSlugs are slugs for the documentation, by the kind of slug a path needs.
type exampleSlugs map[string]string

const (
	anyTool              = "tool"
	toolWithPriceHistory = "tool with price history"
	toolWithEmbeddings   = "tool with embeddings"
	anyComparison        = "comparison"
)

// demoSlugs are from the demo catalog, for use before the first import.
var demoSlugs = exampleSlugs{
	anyTool: "bosco-et-matelots", toolWithPriceHistory: "bosco-et-matelots", toolWithEmbeddings: "bosco-et-matelots",
	anyComparison: "bosco-et-matelots-vs-ruche-12",
}

// examplePath fills an endpoint's path with an example slug.
func (e *endpoint) examplePath(slugs exampleSlugs) string {
	return strings.ReplaceAll(e.path, "{slug}", slugs[e.example])
}

// Samples returns examples from the newest release.
func (h *Handler) Samples(ctx context.Context) (*Samples, error) {
	slugs, result, err := h.findExamples(ctx)
	if err != nil {
		return nil, err
	}
	samples := &Samples{Paths: map[string]string{}, Release: result.Release}
	for _, e := range h.paths {
		samples.Paths[e.path] = e.examplePath(slugs)
	}
	var found struct{ Categories []struct{ Slug string } }
	err = result.Decode(&found)
	for _, category := range found.Categories {
		samples.Categories = append(samples.Categories, category.Slug)
	}
	return samples, err
}

// findExamples picks the best tool for each purpose and the newest comparison.
func (h *Handler) findExamples(ctx context.Context) (exampleSlugs, *graph.Result, error) {
	// Which tools have embeddings is not secret; their content is not read.
	ctx = auth.WithCaller(ctx, auth.Caller{Plan: auth.Developer})
	result := h.executor.Execute(ctx, graph.Request{Operation: h.exampleSlugs})
	var found struct {
		Tools struct {
			Items []struct {
				Slug         string
				PriceHistory []struct{}
				Embeddings   *struct{}
			}
		}
		Comparisons struct{ Items []struct{ Slug string } }
	}
	if err := result.Decode(&found); err != nil {
		return nil, nil, err
	}
	slugs := maps.Clone(demoSlugs)
	if tools := found.Tools.Items; len(tools) > 0 {
		slugs[anyTool], slugs[toolWithPriceHistory], slugs[toolWithEmbeddings] = tools[0].Slug, tools[0].Slug, tools[0].Slug
		for _, tool := range slices.Backward(tools) { // the best tool comes first
			if len(tool.PriceHistory) > 0 {
				slugs[toolWithPriceHistory] = tool.Slug
			}
			if tool.Embeddings != nil {
				slugs[toolWithEmbeddings] = tool.Slug
			}
		}
	}
	if len(found.Comparisons.Items) > 0 {
		slugs[anyComparison] = found.Comparisons.Items[0].Slug
	}
	return slugs, result, nil
}

// Explain returns the GraphQL operation and variables behind a REST URL.
func (h *Handler) Explain(target string) (query string, variables map[string]any, err error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", nil, problem.New(problem.BadInput, "%q is not a valid path.", params.Truncate(target))
	}
	req, err := h.parse(u)
	switch {
	case err != nil:
		return "", nil, err
	case req.err != nil:
		return "", nil, req.err
	case req.operation == nil:
		return "", nil, problem.New(problem.NotFound, "The OpenAPI document has no GraphQL operation.")
	}
	// GraphQL accepts a single value for a list, but editors report it.
	variables = maps.Clone(req.arguments)
	for name, value := range variables {
		if _, isList := value.([]any); !isList &&
			req.operation.Definition().VariableDefinitions.ForName(name).Type.Elem != nil {
			variables[name] = []any{value}
		}
	}
	return strings.Replace(req.operation.Text, " {", graph.AsOfDirective(req.asOf)+" {", 1), variables, nil
}

// ExplorerPath returns the path that opens a REST URL in the GraphQL explorer.
func ExplorerPath(target string) string { return "/explorer?path=" + url.QueryEscape(target) }
