package graph

import (
	"context"
	"math"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/generated"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// groupResolver has what groups of all kinds can be asked for.
type groupResolver[G interface{ GroupKey() model.GroupKey }] struct{}

func (Resolver) ToolGroup() generated.ToolGroupResolver { return groupResolver[*model.ToolGroup]{} }
func (Resolver) ComparisonGroup() generated.ComparisonGroupResolver {
	return groupResolver[*model.ComparisonGroup]{}
}
func (Resolver) RetirementGroup() generated.RetirementGroupResolver {
	return groupResolver[*model.RetirementGroup]{}
}
func (Resolver) PriceChangeCount() generated.PriceChangeCountResolver {
	return groupResolver[*model.PriceChangeCount]{}
}

// groupFigures are the numbers of groups that changes compare.
type groupFigures map[model.GroupKey]model.GroupChange

// groupsOf finds the groups of a field at the root in any release.
type groupsOf struct {
	find  func(in *reader) (groupFigures, error)
	found map[int]groupFigures // by release
}

// canChange remembers how to find the groups of the field being resolved, if their changes
// are selected. Every release has all of them, whatever the order and the limit.
func (r *reader) canChange(ctx context.Context, find func(in *reader) (groupFigures, error)) {
	if selects(ctx, "change") {
		r.groups[graphql.GetFieldContext(ctx).Field.Field] = groupsOf{find, map[int]groupFigures{}}
	}
}

// figuresIn returns the numbers of the groups in the release being read or an earlier one.
func (r *reader) figuresIn(groups groupsOf, number int) (groupFigures, error) {
	if found, known := groups.found[number]; known {
		return found, nil
	}
	in := r
	if number < r.Number() {
		newest := r.executor.InMemory() // other operations share its earlier releases
		info := newest.ReadableAsOf(AsOf{Release: number})
		if info == nil || newest.Partial() {
			newest, info = r.Release, r.Numbered(number)
		}
		in = newReader(r.executor, r.executor.Earlier(newest, info), AsOf{Release: number}, nil)
	}
	found, err := groups.find(in)
	groups.found[number] = found
	return found, err
}

// Change returns how a group differs from the same group in an earlier release.
func (groupResolver[G]) Change(ctx context.Context, group G, from string) (*model.GroupChange, error) {
	r, field := readerFrom(ctx), graphql.GetFieldContext(ctx)
	if r.Partial() {
		return nil, release.ErrPartial
	}
	number, _ := r.Between(from, "")
	if number >= r.Number() {
		return nil, nil
	}
	for field.Object != "Query" {
		field = field.Parent
	}
	groups := r.groups[field.Field.Field]
	now, err := r.figuresIn(groups, r.Number())
	if err != nil {
		return nil, err
	}
	then, err := r.figuresIn(groups, number)
	if err != nil {
		return nil, err
	}
	a, b := now[group.GroupKey()], then[group.GroupKey()]
	return &model.GroupChange{
		Release: number, Count: a.Count - b.Count, AvgScore: difference(a.AvgScore, b.AvgScore),
		AvgMonthlyPrice: difference(a.AvgMonthlyPrice, b.AvgMonthlyPrice), WinRate: difference(a.WinRate, b.WinRate),
	}, nil
}

// difference subtracts rounded numbers, if both exist.
func difference(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	const decimals = 1e4
	rounded := math.Round((*a-*b)*decimals) / decimals
	return &rounded
}
