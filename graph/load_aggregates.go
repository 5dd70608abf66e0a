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

// toolGroups counts and averages tools, group by group.
func (r *reading) toolGroups(ctx context.Context, by model.ToolGroupKey, filter *model.ToolFilter) ([]*model.ToolGroup, error) {
	where, err := r.where(ctx, filter)
	if err != nil {
		return nil, err
	}
	as := func(name string, of func(*entsql.Selector) string) ent.AggregateFunc {
		return func(s *entsql.Selector) string { return entsql.As(of(s), name) }
	}
	score := func(of func(string) string) func(*entsql.Selector) string {
		return func(s *entsql.Selector) string { return of(s.C(tool.FieldScore)) }
	}
	var rows []struct {
		// One of these is the group's key, the others are not read.
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
	err = r.client.Tool.Query().Where(r.scanned(where)...).GroupBy(groupColumns[by]).Aggregate(
		as("group_count", func(*entsql.Selector) string { return entsql.Count("*") }),
		as("group_tested", score(entsql.Count)),
		as("group_sum", score(entsql.Sum)), as("group_min", score(entsql.Min)), as("group_max", score(entsql.Max)),
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

// bins of the histogram: 0 to 1, …, 9 to 10.
const bins = 10

// scoreHistogram counts equal scores in the database, of which there are few,
// and puts them into bins here, where rounding is the same on every database.
func (r *reading) scoreHistogram(ctx context.Context, filter *model.ToolFilter) ([]*model.ScoreBin, error) {
	where, err := r.where(ctx, filter)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Score float64 `sql:"score"`
		Count int     `sql:"count"`
	}
	if len(where) > 1 {
		where = r.scanned(where)
	}
	err = r.client.Tool.Query().Where(append(where, untestedIs(false))...).GroupBy(tool.FieldScore).Aggregate(ent.Count()).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	histogram := make([]*model.ScoreBin, bins)
	for i := range histogram {
		histogram[i] = &model.ScoreBin{From: float64(i), To: float64(i + 1)}
	}
	for _, row := range rows {
		histogram[min(int(row.Score), bins-1)].Count += row.Count
	}
	return histogram, nil
}

// priceChangeCounts counts the price changes of tools by month and category.
func (r *reading) priceChangeCounts(ctx context.Context, filter *model.ToolFilter, since *string) ([]*model.PriceChangeCount, error) {
	where, err := r.where(ctx, filter)
	if err != nil {
		return nil, err
	}
	month := func(column string) string { return "substr(" + column + ", 1, 7)" }
	var rows []struct {
		Month    string `sql:"change_month"`
		Category string `sql:"category_slug"`
		Count    int    `sql:"change_count"`
	}
	err = r.client.Tool.Query().Where(r.scanned(where)...).GroupBy(tool.FieldCategorySlug).Aggregate(func(s *entsql.Selector) string {
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
