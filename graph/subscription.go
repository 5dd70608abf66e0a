package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"golang.org/x/sync/singleflight"

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
	op, rejection := e.prepare(ctx, req)
	if rejection != nil {
		return nil, rejection
	}
	// Validation does not see fields removed by directives or introspection
	// within fragments.
	fields := graphql.CollectFields(op.OperationContext, op.Operation.SelectionSet, nil)
	if len(fields) != 1 || strings.HasPrefix(fields[0].Name, "__") {
		return nil, e.Reject(ctx, problem.New(problem.BadInput,
			"A subscription must select exactly one field of Subscription."))
	}
	s := &Subscription{executor: e, publications: make(chan *model.Publication, 1), Cost: op.cost}
	s.ctx = graphql.WithOperationContext(context.WithValue(ctx, publicationsKey{}, s.publications), op.OperationContext)
	s.next = e.schema.Exec(e.withErrors(s.ctx))
	return s, nil
}

// Execute returns the subscription's result for one publication.
func (s *Subscription) Execute(event *journal.Event) (*Result, error) {
	publication, err := newPublication(event)
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

func newPublication(event *journal.Event) (*model.Publication, error) {
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
	}
	for _, name := range journal.Events {
		if n := counts.Events[name]; n > 0 {
			p.Events = append(p.Events, &model.ChangeCount{Type: changeType(name), Count: n})
		}
	}
	return p, nil
}

// releaseSignal wakes streams when there is a new release. It carries no data:
// each stream continues in the journal where it stopped and misses nothing.
type releaseSignal struct {
	mu    sync.Mutex
	count int           // of announcements
	next  chan struct{} // closed by the next announcement
	epoch chan struct{} // closed when release numbers start over
	reads singleflight.Group
}

// AnnounceRelease wakes streams after a new release. It never blocks.
func (e *Executor) AnnounceRelease() {
	s := &e.releases
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	close(s.next)
	s.next = make(chan struct{})
}

// EndStreams ends all streams because release numbers start over: their positions
// no longer exist. Their clients reconnect.
func (e *Executor) EndStreams() {
	s := &e.releases
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.epoch)
	s.epoch = make(chan struct{})
}

// NextRelease returns the signals of the next announcement and the next epoch. Call
// it before Publications, so that no release is missed in between.
func (e *Executor) NextRelease() (next, epoch <-chan struct{}) {
	s := &e.releases
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next, s.epoch
}

func (s *releaseSignal) announcements() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

const journalTimeout = 5 * time.Second

// Publications reads the events of releases. All streams at the same
// position share one query. It returns after journalTimeout even if the database
// is frozen and ignores deadlines.
func (e *Executor) Publications(ctx context.Context, q journal.Query) ([]*journal.Event, error) {
	q.Types = []string{journal.EventCatalogPublished}
	// The key has the number of announcements, so that a query that started before
	// an announcement is not used by the streams that the announcement woke.
	shared := e.releases.reads.DoChan(fmt.Sprint(q, e.releases.announcements()), func() (_ any, err error) {
		defer func() {
			if recovered := recover(); recovered != nil { // singleflight would end the process
				err = fmt.Errorf("panic: %v", recovered)
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), journalTimeout) // shared with other callers
		defer cancel()
		newest, err := e.catalog.Newest(ctx)
		if err != nil || newest.Info == nil {
			return []*journal.Event(nil), err
		}
		q.UpTo = newest.Number()
		return journal.Read(ctx, e.config.Catalog.Client().JournalEntry, q)
	})
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	select {
	case found := <-shared:
		if found.Err != nil {
			return nil, found.Err
		}
		return found.Val.([]*journal.Event), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
