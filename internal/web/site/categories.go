package site

import (
	"context"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

type categoriesView struct{ Categories categoryList }

func (v *categoriesView) prepare(_ context.Context, _ *Site, r *request) error {
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Categories"), "/categories"}))
	return nil
}

type categoryView struct {
	Category      *category
	Best          struct{ Items []tool }
	Cheapest      struct{ Items []tool }
	MostExpensive struct{ Items []tool }
	Tools         listOf[tool]
	RetiredTools  listOf[tool]
	Comparisons   listOf[comparison]
	Market        *figure `json:"-"`
	PriceRange    string  `json:"-"` // per month, or ""
}

func (v *categoryView) prepare(_ context.Context, _ *Site, r *request) error {
	if v.Category == nil {
		return r.notFound("There is no category “%s”.", "There was no category “%s” in this edition.")
	}
	v.PriceRange = priceRange(r.lang, v.Cheapest.Items, v.MostExpensive.Items)
	r.feeds = []page.Feed{categoryFeed(r, v.Category.Slug, v.Category.Label)}
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Categories"), "/categories"}, crumb{v.Category.Label, "/categories/" + v.Category.Slug}),
		itemList(r, v.Tools.Items, v.Tools.Meta.First()))
	v.Market = marketOf(r, r.Slug(), "")
	r.figures = []*figure{v.Market}
	return nil
}

// priceRange describes the prices per month, from the cheapest tool to the most
// expensive.
func priceRange(l lang.Language, cheapest, mostExpensive []tool) string {
	if len(cheapest) == 0 || len(mostExpensive) == 0 || cheapest[0].MonthlyPrice == nil || mostExpensive[0].MonthlyPrice == nil {
		return ""
	}
	from, to := *cheapest[0].MonthlyPrice, *mostExpensive[0].MonthlyPrice
	if from == to {
		return l.Euros(from)
	}
	return l.Text("%s to %s", l.Euros(from), l.Euros(to))
}
