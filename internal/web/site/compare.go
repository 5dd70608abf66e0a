package site

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

type comparisonsView struct {
	Comparisons listOf[comparison]
	Categories  categoryList
}

func (v *comparisonsView) prepare(_ context.Context, _ *Site, r *request) error {
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Comparisons"), "/comparatifs"}))
	return nil
}

type comparisonView struct{ Comparison *comparison }

func (v *comparisonView) prepare(_ context.Context, _ *Site, r *request) error {
	if v.Comparison == nil {
		return r.notFound("There is no comparison “%s”.", "There was no comparison “%s” in this edition.", r.Slug())
	}
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Comparisons"), "/comparatifs"}, crumb{v.Comparison.Title, "/comparatifs/" + v.Comparison.Slug}))
	return nil
}

// SideBySide returns the path of the table of both tools.
func (c *comparison) SideBySide() string { return comparePath(c.ToolA.Slug, c.ToolB.Slug) }

const maxCompared = 4

// comparedParams are the variables with the slugs of the compared tools.
var comparedParams = []string{"a", "b", "c", "d"}

func comparePath(slugs ...string) string {
	escaped := make([]string, len(slugs))
	for i, slug := range slugs {
		escaped[i] = url.PathEscape(slug)
	}
	return "/compare/" + strings.Join(escaped, "/")
}

// compared returns the slugs in the path and in the form below the table, each once.
// In the form, visitors may have entered a name.
func (r *request) compared(shown *catalog.Release) (slugs []string) {
	for _, name := range comparedParams {
		slug, _ := r.variables[name].(string)
		if found := findTool(shown, slug); found != nil && r.Param(name) != "" {
			slug = found.Slug
		}
		if slug != "" && !slices.Contains(slugs, slug) {
			slugs = append(slugs, slug)
		}
	}
	return slugs
}

// findTool returns the tool with a slug or a name, or nil.
func findTool(shown *catalog.Release, entered string) *catalog.Tool {
	words := strings.Join(text.Words(entered), "-")
	if found := cmp.Or(shown.Tool(entered), shown.Tool(words)); found != nil || words == "" {
		return found
	}
	for _, t := range shown.Tools {
		if strings.Join(text.Words(t.Name), "-") == words {
			return t
		}
	}
	return nil
}

// rejectedForm reports that a form to choose tools must be corrected.
type rejectedForm struct {
	*problem.Problem
	status int
}

func (e rejectedForm) Unwrap() error { return e.Problem }

// chooseView is the page for choosing which tools to compare.
type chooseView struct {
	Categories  categoryList
	Comparisons listOf[comparison]
	A           *tool
	Fields      []chosenTool `json:"-"`
}

// chosenTool is a field of the form.
type chosenTool struct {
	Name, Value string
	Number      int
	Required    bool
	Error       string
	Similar     []page.Suggestion // links that replace the value
}

func (v *chooseView) prepare(_ context.Context, _ *Site, r *request) error {
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Compare tools"), "/compare"}))
	var slugs []string
	var rejected error
	for i, name := range comparedParams {
		field := chosenTool{Name: name, Number: i + 1, Required: i < 2, Value: strings.TrimSpace(r.Param(name))}
		switch found := findTool(r.shown, field.Value); {
		case field.Value == "":
		case found == nil:
			unknown := r.noTool(field.Value)
			field.Error, rejected = unknown.In(r.lang), rejectedForm{unknown, http.StatusNotFound}
			field.Similar = similarInField(r, name, field.Value)
		case slices.Contains(slugs, found.Slug):
			field.Error = r.lang.Text("You have chosen this tool already.")
		default:
			slugs = append(slugs, found.Slug)
		}
		v.Fields = append(v.Fields, field)
	}
	switch {
	case rejected != nil:
		return rejected
	case len(slugs) > 1:
		return redirect(r.Link(comparePath(slugs...)))
	case slices.ContainsFunc(v.Fields, func(f chosenTool) bool { return f.Error != "" }):
		return rejectedForm{problem.New(problem.BadInput, "Choose at least two different tools."), http.StatusUnprocessableEntity}
	}
	return nil
}

// similarInField returns links to the same form with a similar tool in a field.
func similarInField(r *request, name, value string) (found []page.Suggestion) {
	for _, t := range r.shown.SimilarTools(value, maxSuggestions) {
		found = append(found, page.Suggestion{Path: r.With(name, t.Slug), Name: t.Name})
	}
	return found
}

// compareView is a table of two to four tools.
type compareView struct {
	Feed                                   feedInfo
	A, B, C, D                             *tool
	RetiredA, RetiredB, RetiredC, RetiredD *tool
	AB, AC, AD, BC, BD, CD                 struct{ Items []comparison }
	Tools                                  []tool       `json:"-"`
	Published                              []comparison `json:"-"`
	Rows                                   []compareRow `json:"-"`
	Scores, Prices                         *figure      `json:"-"`
	Next                                   string       `json:"-"` // the parameter of another tool, or "" if there are four
	Others                                 []tool       `json:"-"` // to add
}

// Without returns the path of the comparison without a tool, or "" if there are
// only two.
func (v *compareView) Without(slug string) string {
	slugs := slices.DeleteFunc(v.slugs(), func(other string) bool { return other == slug })
	if len(slugs) < 2 {
		return ""
	}
	return comparePath(slugs...)
}

func (v *compareView) slugs() (slugs []string) {
	for _, t := range v.Tools {
		slugs = append(slugs, t.Slug)
	}
	return slugs
}

// Names returns the names of all tools.
func (v *compareView) Names(separator string) string {
	names := make([]string, len(v.Tools))
	for i, t := range v.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, separator)
}

func (v *compareView) prepare(_ context.Context, _ *Site, r *request) error {
	slugs := r.compared(r.shown)
	if len(slugs) == 1 {
		return redirect(r.Link("/tools/", url.PathEscape(slugs[0])))
	}
	if path := comparePath(slugs...); len(slugs) != len(r.pathParams()) {
		return redirect(r.Link(path))
	}
	active, retired := []*tool{v.A, v.B, v.C, v.D}, []*tool{v.RetiredA, v.RetiredB, v.RetiredC, v.RetiredD}
	for i, slug := range slugs {
		found := cmp.Or(active[i], retired[i])
		if found == nil {
			return rejectedForm{r.noTool(slug), http.StatusNotFound}
		}
		v.Tools = append(v.Tools, *found)
	}
	for _, pair := range [][]comparison{v.AB.Items, v.AC.Items, v.AD.Items, v.BC.Items, v.BD.Items, v.CD.Items} {
		v.Published = append(v.Published, pair...)
	}
	v.Rows = compareRows(r.lang, v.Tools)
	v.Scores = newStepChart(r, "scores", "Score over time", v.Tools, scores, v.Feed.UpdatedAt)
	v.Prices = newStepChart(r, "prices", "Price per month over time", v.Tools, monthlyPrices(r.lang), v.Feed.UpdatedAt)
	if len(slugs) < maxCompared {
		v.Next = comparedParams[len(slugs)]
	}
	for _, t := range v.Tools {
		for _, other := range t.Category.Tools {
			if !slices.ContainsFunc(append(v.Tools, v.Others...), func(t tool) bool { return t.Slug == other.Slug }) {
				v.Others = append(v.Others, other)
			}
		}
	}
	slices.SortFunc(v.Others, func(a, b tool) int { return cmp.Compare(text.Fold(a.Name), text.Fold(b.Name)) })
	r.figures, r.canonical = []*figure{v.Scores, v.Prices}, comparePath(slices.Sorted(slices.Values(v.slugs()))...) // the same for every order
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Compare tools"), "/compare"}, crumb{v.Names(", "), r.canonical}), itemList(r, v.Tools, 1))
	return nil
}

// compareRow is a property of all tools.
type compareRow struct {
	Name    string
	Kind    string // how the template shows the cells
	Differs bool
	Cells   []compareCell
}

type compareCell struct {
	Tool  tool
	Score *float64
	Best  bool
}

// compareRows compares tools. A retired tool has no price or verdict, so its
// cells are empty.
func compareRows(l lang.Language, tools []tool) (rows []compareRow) {
	for _, p := range []struct {
		name, kind string
		number     func(tool) *float64
		better     float64 // 1 if the highest number is the best, -1 if the lowest is
		text       func(tool) string
	}{
		{l.Text("Score"), "score", func(t tool) *float64 { return t.Score }, 1, nil},
		{l.Text("Verifiability"), "score", func(t tool) *float64 { return t.Verifiability }, 1, nil},
		{l.Text("Obsolescence"), "age", func(t tool) *float64 { return t.Obsolescence }, -1, nil},
		{l.Text("Price"), "price", func(t tool) *float64 { return t.MonthlyPrice }, -1, func(t tool) string { return t.Price }},
		{l.Text("Pricing"), "pricing", nil, 0, func(t tool) string { return t.Pricing }},
		{l.Text("Made for"), "icp", nil, 0, func(t tool) string { return t.Icp }},
		{l.Text("Category"), "category", nil, 0, func(t tool) string { return t.Category.Slug }},
		{l.Text("Updated"), "updated", nil, 0, func(t tool) string { return t.UpdatedAt }},
		{l.Text("Verdict"), "verdict", nil, 0, func(t tool) string { return t.Verdict }},
	} {
		row := compareRow{Name: p.name, Kind: p.kind}
		if p.text == nil {
			p.text = func(t tool) string { return formatScore(l, p.number(t)) }
		}
		var numbers []float64
		for _, t := range tools {
			cell := compareCell{Tool: t}
			if p.number != nil {
				cell.Score = p.number(t)
			}
			if cell.Score != nil {
				numbers = append(numbers, *cell.Score*p.better)
			}
			row.Cells = append(row.Cells, cell)
			row.Differs = row.Differs || p.text(t) != p.text(tools[0])
		}
		for i, c := range row.Cells { // there is no best one if all are equal
			row.Cells[i].Best = c.Score != nil && *c.Score*p.better == slices.Max(numbers) && slices.Max(numbers) > slices.Min(numbers)
		}
		rows = append(rows, row)
	}
	return rows
}
