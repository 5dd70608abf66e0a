package mcp

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/catalog/release"
	"palmares/internal/core/text"
)

const (
	maxHintWords      = 5
	maxHintCategories = 30
	maxCompletions    = 100 // of the protocol
)

// explainEmpty returns what to try after a search without results.
func explainEmpty(r *release.Release, search string) string {
	matching := func(words string) (n int) {
		found, err := r.Search(words)
		if err != nil {
			return 0
		}
		for t := range found {
			if t.Active() {
				n++
			}
		}
		return n
	}
	if n := matching(search); n > 0 {
		return fmt.Sprintf("No tool matches all arguments. Without the others, search matches %d.", n)
	}
	hint := "No tool contains these words. Texts are in French, so try French words."
	var alone, similar, categories []string
	words := text.Words(search)
	if len(words) > 1 {
		for _, word := range words[:min(len(words), maxHintWords)] {
			if n := matching(word); n > 0 {
				alone = append(alone, fmt.Sprintf("%s (%d tools)", word, n))
			}
		}
	}
	for _, t := range r.SimilarTools(search, maxSuggestions) {
		if t.Active() {
			similar = append(similar, t.Slug)
		}
	}
	for _, c := range r.Categories[:min(len(r.Categories), maxHintCategories)] {
		categories = append(categories, c.Slug+" ("+c.Label+")")
	}
	for _, list := range []struct {
		label string
		items []string
	}{{"Words that match alone", alone}, {"Tools with similar names", similar}, {"Categories", categories}} {
		if len(list.items) > 0 {
			hint += " " + list.label + ": " + strings.Join(list.items, ", ") + "."
		}
	}
	return hint
}

// complete proposes values that start with what the user has typed: slugs, names of
// guides, and days of releases.
func (s *Server) complete(ctx context.Context, request *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	typed := request.Params.Argument.Value
	var values []string
	total := 0
	switch ref := request.Params.Ref; {
	case ref == nil:
	case ref.URI == toolTemplate:
		newest, err := s.cfg.Executor.Newest(ctx)
		if err != nil {
			return nil, err
		}
		values, total = slugsFrom(newest, typed)
	case ref.URI == guideTemplate:
		for _, g := range s.cfg.Guides {
			values = append(values, g.Name)
		}
	case ref.Name == "what_changed":
		newest, err := s.cfg.Executor.Newest(ctx)
		if err != nil {
			return nil, err
		}
		for _, info := range newest.All {
			values = append(values, info.FeedDate, strconv.Itoa(info.ID))
		}
	}
	if total == 0 {
		values = slices.DeleteFunc(values, func(value string) bool { return !strings.HasPrefix(value, typed) })
		total = len(values)
	}
	values = values[:min(len(values), maxCompletions)]
	details := sdk.CompletionResultDetails{Values: append([]string{}, values...), Total: total, HasMore: total > len(values)}
	return &sdk.CompleteResult{Completion: details}, nil
}

// slugsFrom returns the first slugs that start with a text, and how many there are.
func slugsFrom(r *release.Release, start string) (slugs []string, total int) {
	tools := r.Tools // by slug
	from := sort.Search(len(tools), func(i int) bool { return tools[i].Slug >= start })
	total = sort.Search(len(tools)-from, func(i int) bool { return !strings.HasPrefix(tools[from+i].Slug, start) })
	for _, t := range tools[from : from+min(total, maxCompletions)] {
		slugs = append(slugs, t.Slug)
	}
	return slugs, total
}
