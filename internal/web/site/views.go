package site

import "palmares/internal/core/problem"

type homeView struct {
	Feed  feedInfo
	Stats struct {
		ToolsTotal, ToolsTested, ToolsRetired, ComparisonsTotal int
		ToolsAvgScore                                           *float64
	}
	ScoreHistogram []bin
	Categories     []category
	Best           struct{ Items []tool }
	Changes        struct{ Nodes []change }
	Chart          histogram `json:"-"`
}

func (v *homeView) prepare(*asked) (string, error) {
	v.Chart = drawHistogram(v.ScoreHistogram)
	return "", nil
}

type toolsView struct {
	Tools struct {
		Items []tool
		Meta  place
	}
	Categories []category
}

func (*toolsView) prepare(*asked) (string, error) { return "", nil }

type toolView struct {
	Feed         feedInfo
	Tool         *tool
	RetiredTool  *retired
	Alternatives []tool `json:"-"`
	Prices       *steps `json:"-"` // nil where there is nothing to draw
	Changed      bool   `json:"-"` // the price did
	Newest       []moment
}

// mostAlternatives are shown on a tool's page.
const mostAlternatives = 6

func (v *toolView) prepare(asked *asked) (string, error) {
	if v.Tool == nil {
		if v.RetiredTool != nil {
			return "/cimetiere/" + v.RetiredTool.Slug, nil
		}
		return "", problem.New(problem.NotFound, "No tool is called “%v”.", asked.variables["slug"])
	}
	for _, other := range v.Tool.Category.Tools {
		if other.Slug != v.Tool.Slug && len(v.Alternatives) < mostAlternatives {
			v.Alternatives = append(v.Alternatives, other)
		}
	}
	v.Prices = drawSteps(v.Tool.History, v.Tool.PricePeriod, v.Feed.UpdatedAt)
	for _, m := range v.Tool.History {
		v.Changed = v.Changed || m.Price != v.Tool.Price || m.Pricing != v.Tool.Pricing
	}
	for i := len(v.Tool.History) - 1; i >= 0; i-- {
		v.Newest = append(v.Newest, v.Tool.History[i])
	}
	return "", nil
}

type comparisonsView struct {
	Comparisons struct {
		Items []comparison
		Meta  place
	}
	Categories []category
}

func (*comparisonsView) prepare(*asked) (string, error) { return "", nil }

type comparisonView struct{ Comparison *comparison }

func (v *comparisonView) prepare(asked *asked) (string, error) {
	if v.Comparison == nil {
		return "", problem.New(problem.NotFound, "No published comparison is called “%v”.", asked.variables["slug"])
	}
	return "", nil
}

// Sides are both tools, in their order.
func (v *comparisonView) Sides() []side { return []side{v.Comparison.ToolA, v.Comparison.ToolB} }

type categoriesView struct{ Categories []category }

func (*categoriesView) prepare(*asked) (string, error) { return "", nil }

type graveyardView struct {
	RetiredTools struct {
		Items []retired
		Meta  place
	}
	Categories []category
}

func (*graveyardView) prepare(*asked) (string, error) { return "", nil }

type retiredView struct {
	RetiredTool *retired
	Tool        *tool
}

func (v *retiredView) prepare(asked *asked) (string, error) {
	switch {
	case v.RetiredTool != nil:
		return "", nil
	case v.Tool != nil:
		return "/tools/" + v.Tool.Slug, nil
	}
	return "", problem.New(problem.NotFound, "No retired tool is called “%v”.", asked.variables["slug"])
}
