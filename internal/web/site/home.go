package site

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strings"

	"palmares/graph"
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
)

// homeView is the home page.
type homeView struct {
	Feed  feedInfo
	Stats struct {
		ToolsTotal, ToolsTested, ToolsRetired, ComparisonsTotal int
		ToolsAvgScore                                           *float64
	}
	ScoreHistogram []bin
	Categories     categoryList
	Best           struct{ Items []tool }
	ScoreChanges   struct{ Nodes []toolChange }
	PriceChanges   struct{ Nodes []toolChange }
	homeExamples

	Edition        *edition      `json:"-"` // nil before the second one
	Chart          *figure       `json:"-"` // nil if there is nothing to draw
	Movers         []scoreMover  `json:"-"`
	Prices         []toolChange  `json:"-"`
	REST, Response template.HTML `json:"-"` // the responses to the example
	asOf           struct{ query, directive string }
}

type homeExamples struct {
	Example      json.RawMessage // the response of the REST API to the example request
	ExampleItems json.RawMessage // the same in GraphQL
}

const maxMovers, maxPriceChanges = 5, 5

func (v *homeView) prepare(ctx context.Context, s *Site, r *request) (err error) {
	v.Chart = newHistogram(r, v.ScoreHistogram)
	v.Movers = biggestMovers(v.ScoreChanges.Nodes)
	v.Prices = priceChanges(v.PriceChanges.Nodes)
	v.REST = showJSON(r.lang, v.Example)
	v.Response = showJSON(r.lang, slices.Concat([]byte(`{"data":{"tools":`), v.ExampleItems, []byte(`}}`)))
	if asOf := r.asOfQuery().Encode(); asOf != "" {
		v.asOf.query, v.asOf.directive = "&"+asOf, graph.AsOfDirective(r.asOf)
	}
	r.figures = []*figure{v.Chart}
	if v.Feed.Release > 1 {
		v.Edition, err = s.editionOf(ctx, r, v.Feed.Release)
	}
	return err
}

// ExamplePath returns the path of the example request.
func (v *homeView) ExamplePath() string {
	return "/api/v1/tools?score_min=8&limit=2" + v.asOf.query
}

// GraphQL returns the example request as a query.
func (v *homeView) GraphQL() string {
	return "query" + v.asOf.directive + ` {
  tools(filter: {scoreMin: 8}, limit: 2) {
    items {
      name
      score
      price
    }
  }
}`
}

// Spark returns the line of a tool's scores.
func (v *homeView) Spark(t tool) template.HTML {
	return newSparkline(&t, scores, v.Feed.UpdatedAt)
}

// toolChange is an event of the journal about a tool whose score or price changed.
type toolChange struct {
	Slug, PublishedAt string
	Before, After     toolState
	Tool              *tool // nil if it was removed
}

type toolState struct {
	Score     *float64
	Price     string
	ChangedAt string `json:"changed_at"`
}

// biggestMovers returns the largest changes of scores, at most one per tool. The changes must
// be sorted, newest first.
func biggestMovers(changes []toolChange) (movers []scoreMover) {
	for _, c := range changes {
		before, after := c.Before.Score, c.After.Score
		known := c.Tool != nil && before != nil && after != nil
		if known && !slices.ContainsFunc(movers, func(newer scoreMover) bool { return newer.Slug == c.Slug }) {
			movers = append(movers, scoreMover{c.Slug, before, after, *after - *before, c.Tool})
		}
	}
	slices.SortStableFunc(movers, func(a, b scoreMover) int { return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change)) })
	return movers[:min(len(movers), maxMovers)]
}

// Day returns the day of a new price.
func (c toolChange) Day() string { return cmp.Or(c.After.ChangedAt, dayOf(c.PublishedAt)) }

// Direction returns "up" or "down", or "" if the prices cannot be compared.
func (c toolChange) Direction() string {
	direction, _ := pricing.Compare(pricing.Read(c.Before.Price), pricing.Read(c.After.Price))
	return direction
}

// priceChanges returns the latest changes of prices. A release may contain changes of several
// days.
func priceChanges(changes []toolChange) []toolChange {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c toolChange) bool { return c.Tool == nil || c.Before.Price == c.After.Price })
	slices.SortStableFunc(changes, func(a, b toolChange) int { return strings.Compare(b.Day(), a.Day()) })
	return changes[:min(len(changes), maxPriceChanges)]
}

// PriceSpark returns the line of a tool's prices with the period of a new one.
func (v *homeView) PriceSpark(c toolChange) template.HTML {
	return newSparkline(c.Tool, pricesPer(lang.English, pricing.Read(c.After.Price).Unit), v.Feed.UpdatedAt)
}

// jsonLine is a line of indented JSON with a name.
var jsonLine = regexp.MustCompile(`(?m)^( *)(".*?"): (.*?)(,?)$`)

// frenchInJSON are the fields whose values are in French.
var frenchInJSON = []string{`"tagline"`, `"price"`}

// showJSON indents a response, and marks its names and values.
func showJSON(l lang.Language, response []byte) template.HTML {
	var indented bytes.Buffer
	if err := json.Indent(&indented, response, "", "  "); err != nil {
		return ""
	}
	escape := template.HTMLEscapeString
	var body strings.Builder
	for line := range strings.Lines(indented.String()) {
		part := jsonLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if part == nil {
			body.WriteString(escape(line))
			continue
		}
		value := escape(part[3])
		switch first := part[3][0]; {
		case first == '"' && slices.Contains(frenchInJSON, part[2]) && l != lang.French:
			value = `<span lang="fr">` + value + `</span>`
		case first != '"' && first != '{' && first != '[':
			value = "<b>" + value + "</b>"
		}
		fmt.Fprintf(&body, "%s<i>%s</i>: %s%s\n", part[1], escape(part[2]), value, part[4])
	}
	return template.HTML(body.String()) //nolint:gosec // the response is escaped
}
