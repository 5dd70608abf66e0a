package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/text"
)

const (
	maxHintWords      = 5
	maxHintCategories = 30
	maxCompletions    = 100 // of the protocol
)

// explainEmpty returns what to try after a search without results.
func explainEmpty(r *release.Release, given map[string]any) string {
	search, _ := given["search"].(string)
	if search == "" {
		return noMatch("tool", given)
	}
	matching := func(words string) (n int) {
		found, err := r.Search(words, "")
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
	hint := "No tool contains these words. Reviews are in French, so try French words."
	var alone, categories []string
	words := text.Words(search)
	if len(words) > 1 {
		for _, word := range words[:min(len(words), maxHintWords)] {
			if n := matching(word); n > 0 {
				alone = append(alone, fmt.Sprintf("%s (%d tools)", word, n))
			}
		}
	}
	similar, retired := similarTools(r, search)
	for _, c := range r.Categories[:min(len(r.Categories), maxHintCategories)] {
		categories = append(categories, c.Slug+" ("+c.Label+")")
	}
	return hint + listed("Words that match alone", alone) + listed("Tools with similar names", similar) +
		listed("Retired tools with similar names, for get_tool", retired) + listed("Categories", categories)
}

// similarTools returns the slugs of tools with similar names.
func similarTools(r *release.Release, words string) (active, retired []string) {
	for _, t := range r.SimilarTools(words, maxSuggestions) {
		if t.Active() {
			active = append(active, t.Slug)
		} else {
			retired = append(retired, t.Slug)
		}
	}
	return active, retired
}

// listed returns a labeled list as a sentence, after a space; "" for none.
func listed(label string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	return " " + label + ": " + strings.Join(items, ", ") + "."
}

// noMatch names the conditions of a list without items.
func noMatch(item string, given map[string]any) string {
	names := slices.Sorted(maps.Keys(given))
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains([]string{"limit", "page", "sort", "after"}, name) })
	if len(names) == 0 {
		return "There is no " + item + " in this release."
	}
	return fmt.Sprintf("No %s matches all conditions. Omit or relax one of: %s.", item, strings.Join(names, ", "))
}

// explainNoRetired returns what to try after a list of retired tools without items.
func explainNoRetired(r *release.Release, given map[string]any) string {
	hint := noMatch("retired tool", given)
	search, _ := given["search"].(string)
	if search == "" {
		return hint
	}
	active, retired := similarTools(r, search)
	return hint + " Reviews are in French." + listed("Retired tools with similar names", retired) + listed("Active tools with similar names, for get_tool", active)
}

// explainNoChanges returns what to try after a list of changes without items.
func explainNoChanges(r *release.Release, given map[string]any) string {
	if given["after"] != nil {
		return "There are no further changes."
	}
	hint := noMatch("change", given)
	if slug, _ := given["slug"].(string); slug != "" && r.Tool(slug) == nil {
		var similar []string
		for _, t := range r.SimilarTools(slug, maxSuggestions) {
			similar = append(similar, t.Slug)
		}
		hint = fmt.Sprintf("No tool has the slug %q.%s", params.Truncate(slug), didYouMean(similar))
	}
	if r.Info == nil {
		return hint
	}
	var releases []string
	for _, info := range r.All[:min(len(r.All), maxSuggestions)] {
		releases = append(releases, fmt.Sprintf("%d (%s)", info.ID, info.FeedDate))
	}
	return hint + listed("The latest releases", releases)
}

// complete proposes values that start with what the user has typed: slugs of tools and
// categories, names of guides, and days of releases.
func (s *Server) complete(ctx context.Context, request *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	typed := request.Params.Argument.Value
	var values []string
	total := 0
	newest, err := s.cfg.Executor.Newest(ctx)
	switch ref := request.Params.Ref; {
	case ref == nil:
	case ref.URI == guideTemplate:
		for _, g := range s.cfg.Guides {
			values = append(values, g.Name)
		}
	case err != nil:
		return nil, err
	case ref.URI == toolTemplate || ref.URI == reviewTemplate:
		values, total = slugsFrom(newest, typed)
	case ref.Name == "choose_tool" && request.Params.Argument.Name == "category":
		for _, c := range newest.Categories {
			values = append(values, c.Slug)
		}
	case ref.Name == "what_changed":
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
