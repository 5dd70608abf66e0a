package site

import (
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/web/page"
)

//go:embed templates
var templateFiles embed.FS

var templates = page.MustTemplates(templateFiles, "templates", template.FuncMap{
	"bar": newMeter, "score": scoreText, "mean": meanText, "words": words, "catalogLang": func() template.HTMLAttr { return catalogLang },
	"filterOf": filterOf, "toolList": toolList, "pager": pager, "choice": choice, "none": none, "options": options,
})

// shell is what every template gets: its view, and what was asked.
type shell struct {
	Asked *asked
	View  view
	Query string // where the page's own operation is opened
	REST  string // the same from REST, or "" where that cannot tell it
	// Explore opens the REST path's operation.
	Explore string
	Base    string // where programs reach us
}

const cacheControl = "public, max-age=0, s-maxage=60, stale-while-revalidate=3600"

// answerTo works a page out.
func (s *Site) answerTo(a *asked) cache.Make {
	return func(ctx context.Context) (*cache.Entry, int, error) {
		done, err := s.slots.take(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer done()
		answer := s.Executor.Execute(ctx, graph.Request{Operation: a.operation, Variables: a.variables})
		if p := answer.Problem(); p != nil {
			return nil, 0, p
		}
		shows, err := a.view(answer.Data, a)
		if err != nil {
			return nil, 0, err
		}
		elsewhere, err := shows.prepare(a)
		if err != nil {
			return nil, 0, err
		}
		if elsewhere != "" {
			return nil, 0, movedTo(elsewhere)
		}
		content := s.content(a.here, &shell{
			Asked: a, View: shows, Base: s.PublicURL, Query: a.openQuery(), REST: a.REST(), Explore: explorer("path", a.REST()),
		})
		body, err := templates.Render(a.name, content)
		if err != nil {
			return nil, 0, err
		}
		keep := cacheControl
		if answer.Release == 0 {
			keep = "no-store" // nothing is published yet: that will not last
		}
		return cache.NewEntry(body, http.Header{
			"Content-Type":  {"text/html; charset=utf-8"},
			"Cache-Control": {keep},
			"Vary":          {"Accept-Encoding"},
		}), answer.Release, nil
	}
}

// content is what the layout shows around a page.
func (s *Site) content(here string, data any) page.Content {
	return page.Content{
		Service: s.ServiceName, Credit: s.Credit, Here: here, Data: data,
		Head: page.Head{Styles: []string{Assets.Path("site.css")}},
	}
}

// openQuery is where the page's own operation is opened, with its variables.
func (a *asked) openQuery() string {
	variables, err := json.Marshal(a.variables)
	if err != nil {
		panic(err) // they are texts and finite numbers
	}
	return explorer("query", a.operation.Text) + "&variables=" + url.QueryEscape(string(variables))
}

func explorer(name, value string) string { return "/explorer?" + name + "=" + url.QueryEscape(value) }

// viewOf reads an answer into a view.
func viewOf[V any, P interface {
	*V
	view
}](data []byte, _ *asked) (view, error) {
	shows := P(new(V))
	return shows, json.Unmarshal(data, shows)
}

// movedTo is where a page is instead. It is no answer that is kept.
type movedTo string

func (m movedTo) Error() string { return "the page is at " + string(m) }

// scoreText is a score as people read it, or a dash.
func scoreText(score *float64) string {
	if score == nil {
		return noScore
	}
	text := strconv.FormatFloat(*score, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0" // it stands below others
	}
	return text
}

// meanText is a mean of scores, which has two decimals, or a dash.
func meanText(mean *float64) string {
	if mean == nil {
		return noScore
	}
	return strconv.FormatFloat(*mean, 'f', 2, 64)
}

const noScore = "–"
