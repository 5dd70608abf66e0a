package graph

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/fields"
	"palmares/graph/generated"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/problem"
)

// Resolver returns the resolvers of each type. They hold no state: each takes
// the reader of its operation from the context, so that all fields of an
// operation see the same release. Fields without a resolver are fields and methods of
// package model.
type Resolver struct{}

type (
	queryResolver        struct{}
	subscriptionResolver struct{}
	categoryResolver     struct{}
	embeddingsResolver   struct{}
)

func (Resolver) Query() generated.QueryResolver               { return queryResolver{} }
func (Resolver) Subscription() generated.SubscriptionResolver { return subscriptionResolver{} }
func (Resolver) Category() generated.CategoryResolver         { return categoryResolver{} }
func (Resolver) EmbeddingsDocument() generated.EmbeddingsDocumentResolver {
	return embeddingsResolver{}
}

// Active and retired tools share the resolvers of their links.
func (Resolver) Tool() generated.ToolResolver { return activeResolver{} }
func (Resolver) RetiredTool() generated.RetiredToolResolver {
	return retiredResolver{}
}

// reader reads one release for one operation, whose resolvers run one after the other.
type reader struct {
	model.View
	executor *Executor
	scan     *Scan
	queried  bool  // something was read from the database
	failed   error // the first error that the caller did not cause

	total int    // of the list at the root that is read by page
	next  string // cursor of the changes at the root

	unknown []Unknown // values of arguments that match nothing

	groups map[*ast.Field]groupsOf // whose changes are selected

	searches map[searched]release.Relevance
	language string // whose matches rank first; any if empty
}

// searched is what a search depends on.
type searched struct{ language, query string }

func newReader(e *Executor, of *release.Release, asOf AsOf, scan *Scan) *reader {
	if scan != nil && scan.release != of {
		*scan = Scan{release: of, lists: map[string]any{}, searches: map[searched]release.Relevance{}}
	}
	r := &reader{
		View: model.View{Release: of, Pinned: !asOf.IsNewest()}, executor: e, scan: scan, groups: map[*ast.Field]groupsOf{},
	}
	if scan != nil {
		r.searches = scan.searches // cursors have the ranks
	} else {
		r.searches = map[searched]release.Relevance{}
	}
	return r
}

// database returns the client for what is not in memory. Its statements must select
// the rows of the release being read: see store.Versioned.
func (r *reader) database() *ent.Client {
	r.queried = true
	return r.executor.config.Catalog.Client()
}

// journalOf returns the journal of tools, up to the release being read.
func (r *reader) journalOf(slugs ...string) journal.Tools {
	return journal.Tools{
		DB: r.database(), Dialect: r.executor.config.Catalog.Dialect(), Slugs: slugs, UpTo: r.Number(),
	}
}

type readerKey struct{}

// readerFrom returns the reader of the operation being executed.
func readerFrom(ctx context.Context) *reader {
	r, _ := ctx.Value(readerKey{}).(*reader)
	return r
}

// noteFailure is called for each resolver. It ends operations whose time is over, and notes
// the first error that the caller did not cause.
func noteFailure(ctx context.Context, next graphql.Resolver) (any, error) {
	r := readerFrom(ctx)
	if r == nil {
		return next(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	value, err := next(ctx)
	var callersFault *problem.Problem
	if err != nil && r.failed == nil && !errors.As(err, &callersFault) {
		r.failed = err
	}
	return value, err
}

// selects reports whether the field being resolved selects any of the named fields, at
// the end of a path such as edges.node.
func selects(ctx context.Context, names ...string) bool {
	op := graphql.GetOperationContext(ctx)
	var within func(set ast.SelectionSet, path []string) bool
	within = func(set ast.SelectionSet, path []string) bool {
		return slices.ContainsFunc(fields.Collect(op, set, nil), func(field graphql.CollectedField) bool {
			return field.Name == path[0] && (len(path) == 1 || within(field.Selections, path[1:]))
		})
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return within(graphql.GetFieldContext(ctx).Field.Selections, strings.Split(name, "."))
	})
}

// childrenOf returns the objects that the field being resolved links an object to. Those
// of all its siblings are made together, so that they are siblings too.
func childrenOf[Parent comparable, Item, Node any](
	ctx context.Context, siblings *model.Siblings[Parent], parent Parent,
	find func(Parent) []Item, create func([]Item) []Node,
) []Node {
	place := graphql.GetFieldContext(ctx).Field.Field
	children, _ := model.Once(siblings, place, func() (map[Parent][]Node, error) {
		counts, items := map[Parent]int{}, []Item(nil)
		for _, sibling := range siblings.Items {
			found := find(sibling)
			counts[sibling], items = len(found), append(items, found...)
		}
		nodes, of := create(items), make(map[Parent][]Node, len(counts))
		for _, sibling := range siblings.Items {
			of[sibling], nodes = nodes[:counts[sibling]:counts[sibling]], nodes[counts[sibling]:]
		}
		return of, nil
	})
	return children[parent]
}

func (queryResolver) Feed(ctx context.Context) (*model.Feed, error) {
	r := readerFrom(ctx)
	feed := &model.Feed{Credit: r.executor.config.Credit}
	if info := r.Info; info != nil {
		feed.Release, feed.UpdatedAt = info.ID, &info.FeedDate
	}
	return feed, nil
}

func (queryResolver) Stats(ctx context.Context) (*model.Statistics, error) {
	return model.NewStatistics(readerFrom(ctx).Info), nil
}

func orZero[T any](value *T) (zero T) {
	if value == nil {
		return zero
	}
	return *value
}
