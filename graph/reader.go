package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/fields"
	"palmares/graph/generated"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
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
	categoryResolver     struct{}
)

func (Resolver) Query() generated.QueryResolver               { return queryResolver{} }
func (Resolver) Subscription() generated.SubscriptionResolver { return subscriptionResolver{} }
func (Resolver) Category() generated.CategoryResolver         { return categoryResolver{} }

func (Resolver) Tool() generated.ToolResolver {
	return toolResolver[model.Tool]{func(t *model.Tool) string { return t.Slug }}
}

func (Resolver) RetiredTool() generated.RetiredToolResolver {
	return toolResolver[model.RetiredTool]{func(t *model.RetiredTool) string { return t.Slug }}
}

// reader reads one release for one operation.
type reader struct {
	mu     sync.Mutex // held by one resolver at a time
	failed error      // the first error that the caller did not cause

	executor *Executor
	release  *release.Release
	pinned   bool // the operation selects its release, and identifiers include it
	scan     *Scan
	queried  bool // something was read from the database

	total int    // of the list at the root that is read by page
	next  string // cursor of the changes at the root

	searches map[string]release.Relevance // by search text
	nested   map[nestedKey][]nestedList
}

func newReader(e *Executor, of *release.Release, asOf AsOf, scan *Scan) *reader {
	if scan != nil && scan.release != of {
		*scan = Scan{release: of, lists: map[string]any{}}
	}
	return &reader{
		executor: e, release: of, pinned: !asOf.isNewest(), scan: scan,
		searches: map[string]release.Relevance{}, nested: map[nestedKey][]nestedList{},
	}
}

// database returns the client for what is not in memory. Its statements must select
// the rows of the release being read: see store.Versioned.
func (r *reader) database() *ent.Client {
	r.queried = true
	return r.executor.config.Catalog.Client()
}

// journalOf returns the journal of tools, up to the release being read.
func (r *reader) journalOf(slugs []string) journal.Tools {
	return journal.Tools{
		DB: r.database(), Dialect: r.executor.config.Catalog.Dialect(), Slugs: slugs, UpTo: r.release.Number(),
	}
}

type readerKey struct{}

// readerFrom returns the reader of the operation being executed.
func readerFrom(ctx context.Context) *reader {
	r, _ := ctx.Value(readerKey{}).(*reader)
	return r
}

// lockReader runs the resolvers of an operation one at a time. gqlgen runs those of
// root fields concurrently, for which a reader is not safe.
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

// selection is what an operation selects of some objects, which determines what is
// read. The same objects may be selected in several places with different fields
// and arguments, so the sets are never merged.
type selection struct {
	op    *graphql.OperationContext
	sets  []ast.SelectionSet
	types []string // the types that the objects satisfy; empty for any
}

// selected returns the selection of the field being resolved.
func selected(ctx context.Context) selection {
	return selection{
		op:   graphql.GetOperationContext(ctx),
		sets: []ast.SelectionSet{graphql.GetFieldContext(ctx).Field.Selections},
	}
}

// with adds another selection.
func (s selection) with(other selection) selection {
	s.sets = slices.Concat(s.sets, other.sets)
	return s
}

// as narrows a selection to objects of a type, given with its interfaces in the
// order of the schema.
func (s selection) as(types []string) selection {
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
	return slices.ContainsFunc(s.fields(), func(field graphql.CollectedField) bool {
		return slices.Contains(names, field.Name)
	})
}

// named returns the selected fields with the given names: one for each place, unless
// two places spread the same fragment.
func (s selection) named(names ...string) (found []graphql.CollectedField) {
	for _, field := range s.fields() {
		if slices.Contains(names, field.Name) && !slices.ContainsFunc(found, func(known graphql.CollectedField) bool {
			return sameField(known, field)
		}) {
			found = append(found, field)
		}
	}
	return found
}

// sameField reports whether two fields have the same arguments and selections. A
// field in a fragment may be merged with others, so the field alone does not
// identify what is selected.
func sameField(a, b graphql.CollectedField) bool {
	return a.Field == b.Field && slices.Equal(a.Selections, b.Selections)
}

// of returns the selection within the named fields.
func (s selection) of(names ...string) selection {
	return s.within(s.named(names...)...)
}

// within returns the selection within some of its fields.
func (s selection) within(fields ...graphql.CollectedField) selection {
	return selection{
		op:   s.op,
		sets: mapSlice(fields, func(field graphql.CollectedField) ast.SelectionSet { return field.Selections }),
	}
}

// nestedKey identifies lists below the root by their field and their parent.
type nestedKey struct {
	field  *ast.Field
	parent string
}

// nestedList is a list that was read for one place in the operation.
type nestedList struct {
	place graphql.CollectedField
	list  any
}

// setNested stores the list of a parent until its field is resolved.
func (r *reader) setNested(place graphql.CollectedField, parent string, list any) {
	key := nestedKey{place.Field, parent}
	r.nested[key] = append(r.nested[key], nestedList{place, list})
}

// nestedOf returns the list that was read for the field being resolved.
func nestedOf[List any](ctx context.Context, parent string) (none List, err error) {
	place := graphql.GetFieldContext(ctx).Field
	for _, known := range readerFrom(ctx).nested[nestedKey{place.Field, parent}] {
		if list, ok := known.list.(List); ok && sameField(known.place, place) {
			return list, nil
		}
	}
	return none, fmt.Errorf("%s of %s was not read", place.Name, parent)
}

// limit returns the limit of a list below the root.
func (s selection) limit(field graphql.CollectedField, most int) (int, error) {
	limit, _ := document.WholeNumber(field.ArgumentMap(s.op.Variables)["limit"])
	return limit, inField(field, params.CheckRange("limit", limit, 1, most))
}

func (queryResolver) Feed(ctx context.Context) (*model.Feed, error) {
	r := readerFrom(ctx)
	feed := &model.Feed{Credit: r.executor.config.Credit}
	if info := r.release.Info; info != nil {
		feed.Release, feed.UpdatedAt = info.ID, &info.FeedDate
	}
	return feed, nil
}

func (queryResolver) Stats(ctx context.Context) (*model.Statistics, error) {
	info := readerFrom(ctx).release.Info
	if info == nil {
		return &model.Statistics{}, nil
	}
	return statistics(info), nil
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
