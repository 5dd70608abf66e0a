package graph

import (
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/pricechange"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/text"
)

var groupColumns = map[model.ToolGroupKey]string{
	model.ToolGroupKeyCategory: tool.FieldCategorySlug, model.ToolGroupKeyPricing: tool.FieldPricing,
	model.ToolGroupKeyIcp: tool.FieldIcp, model.ToolGroupKeyTier: tool.FieldTier,
}

func (queryResolver) ToolGroups(ctx context.Context, by model.ToolGroupKey, filter *model.ToolFilter) ([]*model.ToolGroup, error) {
	r := readerFrom(ctx)
	where, err := r.toolsWhere(ctx, filter)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		// The group's key; the other three stay empty.
		Category string `sql:"category_slug"`
		Pricing  string `sql:"pricing"`
		Icp      string `sql:"icp"`
		Tier     string `sql:"tier"`

		Count  int      `sql:"group_count"`
		Tested int      `sql:"group_tested"`
		Sum    *float64 `sql:"group_sum"`
		Min    *float64 `sql:"group_min"`
		Max    *float64 `sql:"group_max"`
	}
	err = r.client.Tool.Query().Where(r.withScanHint(where)...).GroupBy(groupColumns[by]).Aggregate(
		ent.As(ent.Count(), "group_count"),
		ent.As(func(s *entsql.Selector) string { return entsql.Count(s.C(tool.FieldScore)) }, "group_tested"),
		ent.As(ent.Sum(tool.FieldScore), "group_sum"), ent.As(ent.Min(tool.FieldScore), "group_min"), ent.As(ent.Max(tool.FieldScore), "group_max"),
	).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	groups := make([]*model.ToolGroup, len(rows))
	for i, row := range rows {
		groups[i] = &model.ToolGroup{
			Key: row.Category + row.Pricing + row.Icp + row.Tier, Count: row.Count, Tested: row.Tested,
			AvgScore: text.Mean(orZero(row.Sum), row.Tested), MinScore: row.Min, MaxScore: row.Max,
		}
	}
	slices.SortFunc(groups, func(a, b *model.ToolGroup) int { return strings.Compare(a.Key, b.Key) })
	return groups, nil
}

// scoreBins is the number of bins of the histogram: 0 to 1, …, 9 to 10.
const scoreBins = 10

// ScoreHistogram counts equal scores in the database and sorts them into bins
// here, so that rounding does not depend on the database.
func (queryResolver) ScoreHistogram(ctx context.Context, filter *model.ToolFilter) ([]*model.ScoreBin, error) {
	r := readerFrom(ctx)
	where, err := r.toolsWhere(ctx, filter)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Score float64 `sql:"score"`
		Count int     `sql:"count"`
	}
	if len(where) > 1 {
		where = r.withScanHint(where)
	}
	err = r.client.Tool.Query().Where(append(where, untestedIs(false))...).GroupBy(tool.FieldScore).Aggregate(ent.Count()).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	histogram := make([]*model.ScoreBin, scoreBins)
	for i := range histogram {
		histogram[i] = &model.ScoreBin{From: float64(i), To: float64(i + 1)}
	}
	for _, row := range rows {
		histogram[min(int(row.Score), scoreBins-1)].Count += row.Count
	}
	return histogram, nil
}

func (queryResolver) PriceChangeCounts(ctx context.Context, filter *model.ToolFilter, since *string) ([]*model.PriceChangeCount, error) {
	r := readerFrom(ctx)
	where, err := r.toolsWhere(ctx, filter)
	if err != nil {
		return nil, err
	}
	month := func(column string) string { return "substr(" + column + ", 1, 7)" }
	var rows []struct {
		Month    string `sql:"change_month"`
		Category string `sql:"category_slug"`
		Count    int    `sql:"change_count"`
	}
	err = r.client.Tool.Query().Where(r.withScanHint(where)...).GroupBy(tool.FieldCategorySlug).Aggregate(func(s *entsql.Selector) string {
		changes := entsql.Table(pricechange.Table)
		s.Join(changes).On(s.C(tool.FieldID), changes.C(pricechange.FieldToolSlug))
		if since != nil {
			s.Where(entsql.GTE(changes.C(pricechange.FieldChangedAt), *since))
		}
		changed := month(changes.C(pricechange.FieldChangedAt))
		s.GroupBy(changed)
		return entsql.As(changed, "change_month") + ", " + entsql.As(entsql.Count("*"), "change_count")
	}).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	counts := make([]*model.PriceChangeCount, len(rows))
	for i, row := range rows {
		counts[i] = &model.PriceChangeCount{Month: row.Month, Category: row.Category, Count: row.Count}
	}
	slices.SortFunc(counts, func(a, b *model.PriceChangeCount) int {
		return strings.Compare(a.Month+" "+a.Category, b.Month+" "+b.Category)
	})
	return counts, nil
}
