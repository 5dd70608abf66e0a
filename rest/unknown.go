package rest

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/text"
)

// Headers that name what a request has and the API does not know. They are hints: the
// status is the same as without them.
const (
	UnknownParametersHeader = "X-Unknown-Parameters"
	UnknownValuesHeader     = "X-Unknown-Values"
)

const (
	maxUnknown   = 5  // names in a header
	maxHintName  = 64 // characters of a name in a header
	categoryName = "category"
	slugsName    = "slugs"
	domainName   = "domain"
)

// unknownParameters returns the header for the parameters of a query string that the
// endpoint does not have; nil for none.
func (e *endpoint) unknownParameters(rawQuery string) []string {
	accepted, suggested := e.inQuery, []string(nil)
	if e.bulk { // the token identifies the caller
		accepted = append(slices.Clip(accepted), params.Param{Name: auth.TokenParameter})
	}
	for _, p := range e.documented() {
		if !p.InPath {
			suggested = append(suggested, p.Name)
		}
	}
	return UnknownParameters(rawQuery, accepted, suggested)
}

// UnknownParameters returns the values of the header X-Unknown-Parameters for the parameters
// of a query string that are not accepted, with similar suggested ones; nil for none.
func UnknownParameters(rawQuery string, accepted []params.Param, suggested []string) []string {
	var hints []string
	for _, name := range params.Unknown(rawQuery, accepted, maxUnknown) {
		hints = append(hints, hint("", name, text.Nearest(name, suggested)))
	}
	if hints == nil {
		return nil
	}
	return []string{strings.Join(hints, ", ")}
}

// unknownValues returns the header for values that match nothing: slugs, domains, and the
// category of a list that is empty because of it; nil if there are none.
func (h *Handler) unknownValues(ctx context.Context, req *request, result *graph.Result) []string {
	hints := append(h.unknownKeys(ctx, req, result), h.unknownCategory(ctx, req, result)...)
	return valuesHeader(append(hints, hintsOf(result)...))
}

// UnknownValues returns the values of the header X-Unknown-Values for values that an
// operation noted; nil for none.
func UnknownValues(result *graph.Result) []string { return valuesHeader(hintsOf(result)) }

func hintsOf(result *graph.Result) (hints []string) {
	for _, v := range result.Unknown {
		hints = append(hints, hint(v.Name+"=", v.Value, v.Nearest))
	}
	return hints
}

func valuesHeader(hints []string) []string {
	if hints == nil {
		return nil
	}
	return []string{strings.Join(hints[:min(len(hints), maxUnknown)], ", ")}
}

// unknownKeys returns hints for the slugs and domains in lists.
func (h *Handler) unknownKeys(ctx context.Context, req *request, result *graph.Result) (hints []string) {
	wanted, _ := req.variables[slugsName].([]string)
	domains, _ := req.variables[domainName].([]string)
	if wanted == nil && domains == nil || result.Release == 0 {
		return nil
	}
	found, err := h.executor.Release(ctx, graph.AsOf{Release: result.Release})
	if err != nil { // the response is valid without the hint
		return nil
	}
	var in names = found
	isKnown, nearest := names.IsTool, names.NearestTool
	if req.isKnown != nil {
		isKnown, nearest = req.isKnown, names.NearestComparison
	}
	for _, slug := range wanted {
		if !isKnown(in, slug) && len(hints) < maxUnknown {
			hints = append(hints, hint(slugsName+"=", slug, nearest(in, slug)))
		}
	}
	if domains != nil {
		for _, domain := range in.UnknownDomains(domains) {
			hints = append(hints, hint(domainName+"=", domain, ""))
		}
	}
	return hints
}

// unknownCategory returns a hint for a list that is empty because no category has the slug.
func (h *Handler) unknownCategory(ctx context.Context, req *request, result *graph.Result) []string {
	wanted, given := req.variables[categoryName].(string)
	if !given || result.Release == 0 || !bytes.HasPrefix(result.Body(), []byte(`{"data":[]`)) {
		return nil
	}
	asOf := graph.AsOf{Release: result.Release}
	categories := h.executor.Execute(ctx, graph.Request{Operation: h.categories, AsOf: asOf})
	var list struct {
		Data []struct{ Slug, Label string }
	}
	if categories.Decode(&list) != nil { // the response is valid without the hint
		return nil
	}
	var slugs, labels []string
	for _, category := range list.Data {
		if category.Slug == wanted {
			return nil
		}
		slugs, labels = append(slugs, category.Slug), append(labels, category.Label)
	}
	nearest := text.Nearest(wanted, slugs)
	if label := text.Nearest(wanted, labels); nearest == "" && label != "" {
		nearest = slugs[slices.Index(labels, label)]
	}
	if strings.Contains(wanted, ",") && slices.Contains([]string{"tools", "prices"}, req.query) {
		return []string{hint(categoryName+"=", wanted, "") + " (one category; for several, use GraphQL: ToolFilter.categories)"}
	}
	return []string{hint(categoryName+"=", wanted, nearest)}
}

// hint formats a name for a header, as it is in a query string: callers choose names,
// and a header must be short and printable ASCII.
func hint(prefix, name, nearest string) string {
	escaped := url.QueryEscape(name)
	if len(escaped) > maxHintName {
		escaped = escaped[:maxHintName]
		if start := strings.LastIndexByte(escaped, '%'); start > maxHintName-len("%xx") { // half of an escape
			escaped = escaped[:start]
		}
	}
	if nearest == "" {
		return prefix + escaped
	}
	return prefix + escaped + " (did you mean " + url.QueryEscape(nearest) + "?)"
}
