package graph

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/fields"
	"palmares/graph/generated"
	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// Resolver returns the resolvers of each type. They hold no state: each takes
// the reader of its operation from the context, so that all fields of an
// operation see the same release.
type Resolver struct{}

type (
	queryResolver        struct{}
	subscriptionResolver struct{}
	toolResolver         struct{}
	retiredToolResolver  struct{}
	categoryResolver     struct{}
)

func (Resolver) Query() generated.QueryResolver               { return queryResolver{} }
func (Resolver) Subscription() generated.SubscriptionResolver { return subscriptionResolver{} }
func (Resolver) Tool() generated.ToolResolver                 { return toolResolver{} }
func (Resolver) RetiredTool() generated.RetiredToolResolver   { return retiredToolResolver{} }
func (Resolver) Category() generated.CategoryResolver         { return categoryResolver{} }

// reader reads one release for one operation.
type reader struct {
	mu      sync.Mutex   // held by one resolver at a time
	failed  error        // the first error that is not the caller's fault
	release *ent.Release // nil before the first import

	executor *Executor
	catalog  Catalog
	client   *ent.Client

	index *catalogIndex

	searches      map[string]map[int]int // ranks of tools by search text
	categoryTools map[categoryToolsKey][]*model.Tool
}

func newReader(e *Executor, index *catalogIndex) *reader {
	return &reader{
		release: index.release, index: index, executor: e, catalog: e.config.Catalog, client: e.config.Catalog.Client(),
		searches: map[string]map[int]int{}, categoryTools: map[categoryToolsKey][]*model.Tool{},
	}
}

type readerKey struct{}

// readerFrom returns the reader of the operation that is being executed.
func readerFrom(ctx context.Context) *reader {
	r, _ := ctx.Value(readerKey{}).(*reader)
	return r
}

// lockReader runs the resolvers of an operation one at a time: gqlgen starts
// those of root fields concurrently, but a reader is not safe for that.
func lockReader(ctx context.Context, next graphql.Resolver) (any, error) {
	r := readerFrom(ctx)
	if r == nil {
		return next(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	value, err := next(ctx)
	var callersFault *problem.Problem
	if err != nil && r.failed == nil && !errors.As(err, &callersFault) {
		r.failed = err
	}
	return value, err
}

// selection is what an operation selects of some objects, which decides what is
// read. The same objects may be selected in several places with different fields
// and arguments, so the sets are never merged.
type selection struct {
	op    *graphql.OperationContext
	sets  []ast.SelectionSet
	types []string // the types that the objects satisfy; empty for any
}

// selected returns the selection of the field that is being resolved.
func selected(ctx context.Context) selection {
	return selection{op: graphql.GetOperationContext(ctx), sets: []ast.SelectionSet{graphql.GetFieldContext(ctx).Field.Selections}}
}

// with adds the selection of another place.
func (s selection) with(sets ...ast.SelectionSet) selection {
	s.sets = slices.Concat(s.sets, sets)
	return s
}

// as narrows a selection on an interface to one of its types.
func (s selection) as(types ...string) selection {
	s.types = types
	return s
}

// fields returns the selected fields after fragments and directives.
func (s selection) fields() []graphql.CollectedField {
	if len(s.sets) == 1 {
		return fields.Collect(s.op, s.sets[0], s.types)
	}
	var all []graphql.CollectedField
	for _, set := range s.sets {
		all = append(all, fields.Collect(s.op, set, s.types)...)
	}
	return all
}

// has reports whether any of the named fields is selected.
func (s selection) has(names ...string) bool {
	return slices.ContainsFunc(s.fields(), func(field graphql.CollectedField) bool { return slices.Contains(names, field.Name) })
}

// of returns the selection within the named fields.
func (s selection) of(names ...string) selection {
	inner := selection{op: s.op}
	for _, field := range s.fields() {
		if slices.Contains(names, field.Name) {
			inner = inner.with(field.Selections)
		}
	}
	return inner
}

// maxLimit returns the largest limit of a list that may be selected in several
// places.
func (s selection) maxLimit(name string) (int, error) {
	most := 0
	for _, field := range s.fields() {
		if field.Name == name {
			limit, _ := wholeNumber(field.ArgumentMap(s.op.Variables)["limit"])
			if err := params.CheckRange("limit", limit, 1, maxPageSize); err != nil {
				return 0, err
			}
			most = max(most, limit)
		}
	}
	return most, nil
}

func (queryResolver) Feed(ctx context.Context) (*model.Feed, error) {
	r := readerFrom(ctx)
	feed := &model.Feed{Credit: r.executor.config.Credit}
	if r.release != nil {
		feed.Release, feed.UpdatedAt = r.release.ID, &r.release.FeedDate
	}
	return feed, nil
}

func (queryResolver) Stats(ctx context.Context) (*model.Statistics, error) {
	release := readerFrom(ctx).release
	if release == nil {
		return &model.Statistics{}, nil
	}
	return statistics(release), nil
}

func statistics(release *ent.Release) *model.Statistics {
	return &model.Statistics{
		ToolsTotal: release.ToolsTotal, ToolsTested: release.ToolsTested,
		ToolsAvgScore: release.ToolsAvgScore, ToolsAvgScoreOrZero: orZero(release.ToolsAvgScore),
		ToolsRetired: release.ToolsRetired, ComparisonsTotal: release.ComparisonsTotal,
	}
}

func orZero[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}
