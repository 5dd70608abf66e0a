package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"palmares/graph"
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
	PriceChanges   eventList
	homeExamples

	Edition        *edition      `json:"-"` // nil before the second one
	Chart          *figure       `json:"-"` // nil if there is nothing to draw
	Scores         []changeLine  `json:"-"` // the largest changes of the edition
	Prices         []changeLine  `json:"-"` // the latest changes
	REST, Response template.HTML `json:"-"` // the responses to the example
	asOf           struct{ query, directive string }
}

type homeExamples struct {
	Example      json.RawMessage // the response of the REST API to the example request
	ExampleItems json.RawMessage // the same in GraphQL
}

const maxHomeChanges = 5 // of each kind

func (v *homeView) prepare(ctx context.Context, s *Site, r *request) (err error) {
	v.Categories.countTested(r.shown)
	v.Chart = newHistogram(r, v.ScoreHistogram)
	v.REST = showJSON(r.lang, v.Example)
	v.Response = showJSON(r.lang, slices.Concat([]byte(`{"data":{"tools":`), v.ExampleItems, []byte(`}}`)))
	if asOf := r.asOfQuery().Encode(); asOf != "" {
		v.asOf.query, v.asOf.directive = "&"+asOf, graph.AsOfDirective(r.asOf)
	}
	r.figures = []*figure{v.Chart}
	editions, err := s.byEdition(ctx, r, v.PriceChanges.Nodes)
	for _, e := range editions {
		v.Prices = append(v.Prices, e.lines(priceChanged)...)
	}
	slices.SortStableFunc(v.Prices, func(a, b changeLine) int { return strings.Compare(b.change().Since, a.change().Since) })
	v.Prices = v.Prices[:min(len(v.Prices), maxHomeChanges)]
	if err != nil || v.Feed.Release < 2 {
		return err
	}
	if v.Edition, err = s.editionOf(ctx, r, v.Feed.Release); v.Edition != nil {
		v.Scores = v.Edition.lines(scoreChanged)
		v.Scores = v.Scores[:min(len(v.Scores), maxHomeChanges)]
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
