package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/model"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
)

var notAStream = problem.New(problem.NotAcceptable, "A subscription is told as server-sent events: send Accept: %s.", mediaStream)

// subscription is one caller's wish to be told of releases.
type subscription struct {
	ctx   context.Context
	given chan *model.Publication
	next  graphql.ResponseHandler
	cost  int
}

type publicationsKey struct{}

// publicationsFor is where a subscription's publications come from.
func publicationsFor(ctx context.Context) <-chan *model.Publication {
	return ctx.Value(publicationsKey{}).(chan *model.Publication)
}

// subscribe checks a subscription. The answer is of one that is refused.
func (e *Executor) subscribe(ctx context.Context, req Request) (*subscription, *Answer) {
	ctx, opCtx, cost, refusal := e.prepare(ctx, req)
	if refusal != nil {
		return nil, refusal
	}
	// A directive may have left no field, and a fragment may hide one of the
	// schema's own.
	fields := graphql.CollectFields(opCtx, opCtx.Operation.SelectionSet, nil)
	if len(fields) != 1 || strings.HasPrefix(fields[0].Name, "__") {
		return nil, e.refuse(ctx, refused(problem.New(problem.BadInput, "A subscription has exactly one field, of Subscription's own.")))
	}
	s := &subscription{given: make(chan *model.Publication, 1), cost: cost}
	ctx = context.WithValue(ctx, publicationsKey{}, s.given)
	s.next, ctx = e.gqlgen.DispatchOperation(ctx, opCtx)
	// Lists look for the field they are in, and plain fields make none.
	s.ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Subscription", Field: fields[0]})
	return s, nil
}

// tell answers the subscription for one release.
func (s *subscription) tell(event *journal.Event) (*Answer, error) {
	publication, err := publicationModel(event)
	if err != nil {
		return nil, err
	}
	s.given <- publication // there is room: the last one was answered
	response := s.next(s.ctx)
	if response == nil {
		return nil, errors.Join(errors.New("the subscription has ended"), s.ctx.Err())
	}
	return &Answer{Data: response.Data, Errors: response.Errors, Cost: s.cost}, nil
}

// publicationModel reads an event that tells of a release.
func publicationModel(event *journal.Event) (*model.Publication, error) {
	var counts struct {
		UpdatedAt    string         `json:"updated_at"`
		ToolsTotal   int            `json:"tools_total"`
		ToolsRetired int            `json:"tools_retired"`
		Comparisons  int            `json:"comparatifs_total"`
		Events       map[string]int `json:"events"`
	}
	if err := json.Unmarshal(event.After, &counts); err != nil {
		return nil, fmt.Errorf("event %s: %w", event.ID(), err)
	}
	p := &model.Publication{
		ID: event.ID(), Release: event.Release, PublishedAt: event.At, UpdatedAt: counts.UpdatedAt,
		ToolsTotal: counts.ToolsTotal, ToolsRetired: counts.ToolsRetired, ComparisonsTotal: counts.Comparisons,
		Events: []*model.ChangeCount{},
	}
	for _, name := range journal.Events {
		if n := counts.Events[name]; n > 0 {
			p.Events = append(p.Events, &model.ChangeCount{Type: typeOfEvent(name), Count: n})
		}
	}
	return p, nil
}
