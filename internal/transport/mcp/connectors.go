package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"palmares/graph"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// The connectors of ChatGPT call two tools, search and fetch, and expect these fields,
// as structured content and as one text with the same JSON.

// hit is a result of search.
type hit struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	URL    string  `json:"url"`
	weight float64 // how well it matches
}

// page is a result of fetch.
type page struct {
	ID       string                     `json:"id"`
	Title    string                     `json:"title"`
	Text     string                     `json:"text"`
	URL      string                     `json:"url"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

var (
	searchShape = objectOf("results", map[string]any{"type": "array", "items": objectOf("id", aString, "title", aString, "url", aString)})
	fetchShape  = objectOf("id", aString, "title", aString, "text", aString, "url", aString, "metadata", map[string]any{"type": "object"})
	aString     = map[string]any{"type": "string"}
)

// objectOf returns the JSON Schema of an object, from names and schemas in pairs.
func objectOf(pairs ...any) map[string]any {
	properties := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		properties[pairs[i].(string)] = pairs[i+1]
	}
	return map[string]any{"type": "object", "properties": properties}
}

// The kinds of results, which their IDs start with.
const (
	kindTool       = "tool"
	kindComparison = "comparatif"
	kindRetired    = "cimetiere"
)

const (
	maxHits        = 10
	maxMatches     = 20 // tools that are ranked together with their comparisons
	maxComparisons = 5  // of a tool
	maxWords       = 16
	longWord       = 50 // letters above which it is not a word
)

// fillers are words of questions that say nothing about what is searched.
var fillers = strings.Fields(`a ai all an and any are as at au aux avec best better by can ce ces cet cette combien comment dans de des do does du
	en entre est et find for from good has have how i ia if in is it la le les like list made make me meilleur meilleure meilleurs might more most my need
	new of on one or ou outil outils par peut plus pour qu que quel quelle quelles quels qui quoi recommend right should show some sont sur than that the
	their there these this to tool tools un une use versus vs want what when where which who why will with would you your`)

// search finds tools and comparisons of them. Because agents send whole questions, it
// ignores words that say nothing.
func (s *Server) search(ctx context.Context, t *tool, arguments json.RawMessage) (*result, error) {
	variables, _, err := t.read(arguments)
	if err != nil {
		return nil, err
	}
	newest, err := s.cfg.Executor.Newest(ctx)
	if err != nil {
		return nil, err
	}
	query := variables["query"].(string)
	words := text.Words(query)
	if asked := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(fillers, word) }); len(asked) > 0 {
		words = asked
	}
	words = slices.DeleteFunc(words, func(word string) bool { return utf8.RuneCountInString(word) > longWord })
	matches, err := newest.SearchAny(words[:min(len(words), maxWords)])
	if err != nil {
		return nil, err
	}
	hits := []*hit{}
	add := func(id, title, url string, weight float64) {
		i := slices.IndexFunc(hits, func(h *hit) bool { return h.ID == id })
		if i < 0 {
			i, hits = len(hits), append(hits, &hit{ID: id, Title: title, URL: url})
		}
		hits[i].weight += weight
	}
	for _, m := range matches[:min(len(matches), maxMatches)] {
		if !m.Active() {
			add(kindRetired+":"+m.Slug, m.Name, s.retiredURL(m.Slug), m.Weight)
			continue
		}
		add(kindTool+":"+m.Slug, m.Name, m.CanonicalURL, m.Weight)
		comparisons := newest.ComparisonsOf(m.Tool)
		for _, c := range comparisons[:min(len(comparisons), maxComparisons)] { // those of two matches rank higher
			add(kindComparison+":"+c.Slug, c.Title, c.CanonicalURL, m.Weight/2)
		}
	}
	slices.SortStableFunc(hits, func(a, b *hit) int { return cmp.Compare(b.weight, a.weight) })
	body, err := jsonv2.Marshal(map[string][]*hit{"results": hits[:min(maxHits, len(hits))]})
	if err != nil {
		return nil, err
	}
	found := &result{Structured: body}
	if len(hits) == 0 {
		found.add(explainEmpty(newest, map[string]any{"search": query}))
	}
	found.Text = string(found.Structured)
	return found, nil
}

// retiredURL returns the page of a retired tool: the editors' site has none.
func (s *Server) retiredURL(slug string) string { return s.cfg.PublicURL + "/en/graveyard/" + slug }

// fetch returns a result of search as get_tool returns it, or a comparison.
func (s *Server) fetch(ctx context.Context, t *tool, arguments json.RawMessage) (*result, error) {
	variables, _, err := t.read(arguments)
	if err != nil {
		return nil, err
	}
	newest, err := s.cfg.Executor.Newest(ctx)
	if err != nil {
		return nil, err
	}
	id := variables["id"].(string)
	kind, slug, _ := strings.Cut(id, ":")
	source, argument := s.toolDetail, "slug"
	switch {
	case kind == kindComparison && newest.FindComparisons(slug) != nil:
		source, argument = t, "id"
	case (kind == kindTool || kind == kindRetired) && newest.Tool(slug) != nil:
	default:
		return nil, unknownID(newest, id)
	}
	read, err := s.run(ctx, source, map[string]any{argument: slug}, graph.AsOf{})
	if err != nil {
		return nil, err
	}
	var body map[string]map[string]json.RawMessage
	if err := json.Unmarshal(read.Structured, &body); err != nil {
		return nil, err
	}
	p := page{Text: read.Text, Metadata: map[string]json.RawMessage{}}
	var fields map[string]json.RawMessage
	for name, k := range map[string]string{"tool": kindTool, "retired": kindRetired, "comparison": kindComparison} {
		if body[name] != nil {
			fields, p.ID = body[name], k+":"+slug
		}
	}
	for name, target := range map[string]*string{"name": &p.Title, "title": &p.Title, "canonical_url": &p.URL} {
		if fields[name] != nil {
			_ = json.Unmarshal(fields[name], target) // they are strings
		}
	}
	p.URL = cmp.Or(p.URL, s.retiredURL(slug))
	for _, name := range []string{"category", "pricing", "price", "score", "winner", "reason", "retired_at", "updated_at"} {
		if fields[name] != nil {
			p.Metadata[name] = fields[name]
		}
	}
	structured, err := jsonv2.Marshal(p, jsonv2.Deterministic(true))
	return &result{structured, string(structured)}, err
}

// unknownID returns the error for an ID that nothing has, with similar ones.
func unknownID(r *release.Release, id string) error {
	kind, slug, hasKind := strings.Cut(id, ":")
	if !hasKind {
		slug = id
	}
	var similar []string
	for _, t := range r.SimilarTools(slug, maxSuggestions) {
		if t.Active() {
			similar = append(similar, kindTool+":"+t.Slug)
		} else {
			similar = append(similar, kindRetired+":"+t.Slug)
		}
	}
	if c := r.NearestComparison(slug); c != "" && (kind == kindComparison || len(similar) == 0) {
		similar = []string{kindComparison + ":" + c}
	}
	if !slices.Contains([]string{kindTool, kindRetired, kindComparison}, kind) {
		return problem.New(problem.BadInput, "id must be %s:, %s: or %s: and a slug (got %q).%s",
			kindTool, kindComparison, kindRetired, params.Truncate(id), didYouMean(similar))
	}
	suggestion := cmp.Or(didYouMean(similar), " Call search to find it.")
	return problem.New(problem.NotFound, "%s", fmt.Sprintf("id: there is no %q.%s", params.Truncate(id), suggestion))
}
