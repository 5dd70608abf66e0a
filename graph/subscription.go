package graph

import (
	"context"
	"errors"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
)

// ErrNotAStream is the error for a subscription that is executed like a query.
var ErrNotAStream = problem.New(problem.NotAcceptable,
	"Subscriptions are served as server-sent events. Send Accept: text/event-stream.")

// Subscription is a valid subscription operation.
type Subscription struct {
	Cost         int
	executor     *Executor
	ctx          context.Context
	publications chan *model.Publication
	next         graphql.ResponseHandler
}

type publicationsKey struct{}

func (subscriptionResolver) CatalogPublished(ctx context.Context) (<-chan *model.Publication, error) {
	return ctx.Value(publicationsKey{}).(chan *model.Publication), nil
}

// Subscribe validates a subscription, or returns the result that rejects it.
func (e *Executor) Subscribe(ctx context.Context, req Request) (*Subscription, *Result) {
	op, rejection := e.Prepare(ctx, req)
	if rejection != nil {
		return nil, rejection
	}
	// Validation does not see fields removed by directives or introspection
	// within fragments.
	fields := graphql.CollectFields(op.operation, op.operation.Operation.SelectionSet, nil)
	if len(fields) != 1 || strings.HasPrefix(fields[0].Name, "__") {
		return nil, e.Reject(ctx, problem.New(problem.BadInput,
			"A subscription must select exactly one field of Subscription."))
	}
	s := &Subscription{executor: e, publications: make(chan *model.Publication, 1), Cost: op.cost}
	s.ctx = graphql.WithOperationContext(context.WithValue(ctx, publicationsKey{}, s.publications), op.operation)
	s.next = e.schema.Exec(e.withErrors(s.ctx))
	return s, nil
}

// Execute returns the subscription's result for one publication.
func (s *Subscription) Execute(event *journal.Event) (*Result, error) {
	publication, err := model.NewPublication(event)
	if err != nil {
		return nil, err
	}
	s.publications <- publication // never blocks: the previous one was consumed
	ctx := s.executor.withErrors(s.ctx)
	response := s.next(ctx)
	if response == nil {
		return nil, errors.Join(errors.New("subscription ended"), ctx.Err())
	}
	return &Result{Data: response.Data, Errors: graphql.GetErrors(ctx), Cost: s.Cost}, nil
}
