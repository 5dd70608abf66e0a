package site

import (
	"context"
	"math"

	"palmares/internal/web/page"
)

type categoriesView struct{ Categories categoryList }

func (v *categoriesView) prepare(_ context.Context, _ *Site, r *request) error {
	v.Categories.countTested(r.shown)
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Categories"), "/categories"}))
	return nil
}

type categoryView struct {
	Category     *category
	Tools        listOf[tool]
	RetiredTools listOf[tool]
	Comparisons  listOf[comparison]
	Market       *figure `json:"-"`
	PriceRange   string  `json:"-"` // per month, or ""
}

func (v *categoryView) prepare(_ context.Context, _ *Site, r *request) error {
	if v.Category == nil {
		return r.notFound("There is no category “%s”.", "There was no category “%s” in this edition.", r.Slug())
	}
	one := categoryList{*v.Category}
	one.countTested(r.shown)
	v.Category, v.PriceRange = &one[0], priceRange(r)
	r.feeds = []page.Feed{categoryFeed(r, v.Category.Slug, v.Category.Label)}
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Categories"), "/categories"}, crumb{v.Category.Label, "/categories/" + v.Category.Slug}),
		itemList(r, v.Tools.Items, v.Tools.Meta.First()))
	v.Market = marketOf(r, r.Slug(), "")
	r.figures = []*figure{v.Market}
	return nil
}

// priceRange describes the prices per month in the category of the page, from the lowest to
// the highest.
func priceRange(r *request) string {
	from, to := math.Inf(1), math.Inf(-1)
	for _, t := range r.shown.Tools {
		if t.Active() && t.Category == r.Slug() && !math.IsNaN(t.MonthlyPrice) {
			from, to = min(from, t.MonthlyPrice), max(to, t.MonthlyPrice)
		}
	}
	switch {
	case from > to:
		return ""
	case from == to:
		return r.lang.Euros(from)
	}
	return r.lang.Text("%s to %s", r.lang.Euros(from), r.lang.Euros(to))
}
