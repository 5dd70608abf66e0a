package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph/generated"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// Catalog is where operations read.
type Catalog interface {
	// Reading runs read on one release, again from its start if it must. What
	// is read with the context that it gets is of that release.
	Reading(ctx context.Context, read func(context.Context, *ent.Release) error) error
	Client() *ent.Client
	Dialect() string
	Select(ctx context.Context, statement string, args ...any) (entsql.ColumnScanner, error)
}

// Config is what an executor is made of.
type Config struct {
	Catalog Catalog
	Credit  string // the line that reuse of the data must show
	Limits  Limits
	Log     *slog.Logger
	// Cache is where parsed documents and counts are cached, beside responses;
	// nil for a small one of its own.
	Cache *cache.Cache
	// Tools returns how many tools the catalog has, which decides what some
	// fields cost; nil for a large one.
	Tools func() int
	// Trace is told when an operation begins, by the name of one of ours, and
	// returns what is told the code of its failure, or "". Nil for nobody.
	Trace func(ctx context.Context, name string) (context.Context, func(failed string))
	// Healthy reports whether the database is available, so that a timeout is
	// not blamed on a caller while it is not. Nil means that it always is.
	Healthy func() bool
}

// Executor answers operations, for GraphQL callers and for REST alike.
type Executor struct {
	catalog   Catalog
	credit    string
	limits    Limits
	log       *slog.Logger
	trace     func(context.Context, string) (context.Context, func(string))
	cache     *cache.Cache
	healthy   func() bool
	tools     func() int
	documents *documents
	counts    *cache.Table[int]
	gqlgen    *executor.Executor
	news      news
}

// Request is one operation to answer: a caller's, as text, or one of our own.
type Request struct {
	Query         string
	OperationName string
	Operation     *Operation
	Variables     map[string]any
}

// Answer is what came of it.
type Answer struct {
	Data   json.RawMessage // nil when the request was refused before execution
	Errors gqlerror.List
	Cost   int
	// What the data is of; zero before the first import, or without data.
	Release   int
	UpdatedAt string
	Timeless  bool // it is about the schema alone
	// Cause is why it was refused, where that is our own fault: for the log
	// alone, which has it already for who asked first.
	Cause error
}

// Refused tells that nothing was executed.
func (a *Answer) Refused() bool { return a.Data == nil }

// ownCacheSize is for executors that share no cache.
const ownCacheSize = 16 << 20

// NewExecutor builds the one executor.
func NewExecutor(cfg Config) *Executor {
	schema := generated.NewExecutableSchema(generated.Config{Resolvers: &Resolver{}, Schema: Schema()})
	if cfg.Cache == nil {
		cfg.Cache = cache.New(ownCacheSize, nil, cfg.Log)
	}
	if cfg.Tools == nil {
		cfg.Tools = func() int { return pricedTools }
	}
	e := &Executor{
		catalog: cfg.Catalog, credit: cfg.Credit, limits: cfg.Limits, log: cfg.Log, trace: cfg.Trace, cache: cfg.Cache, healthy: cfg.Healthy, tools: cfg.Tools,
		documents: newDocuments(schema.Schema(), cfg.Limits, cfg.Cache),
		counts:    cache.NewTable[int](cfg.Cache, "counts"),
		gqlgen:    executor.New(schema),
	}
	e.gqlgen.SetQueryCache(parsedDocument{})
	e.gqlgen.Use(extension.Introspection{})
	e.gqlgen.AroundRootFields(limitResponse)
	e.gqlgen.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error { return present(ctx, e.log, err) })
	e.gqlgen.SetRecoverFunc(func(ctx context.Context, caught any) error {
		return &problem.Problem{Code: problem.Internal, Message: "Something went wrong on our side.",
			Cause: fmt.Errorf("panic: %v\n%s", caught, debug.Stack())}
	})
	return e
}

// Execute answers one operation. It never fails: what goes wrong is told in
// the answer.
func (e *Executor) Execute(ctx context.Context, req Request) *Answer {
	if e.trace == nil {
		return e.execute(ctx, req)
	}
	ctx, ended := e.trace(ctx, req.name())
	answer := e.execute(ctx, req)
	failed := problem.Code(codeOf(answer.Errors))
	if failed != problem.Internal && failed != problem.Unavailable && failed != problem.Timeout {
		failed = "" // it is the caller's own fault
	}
	ended(string(failed))
	return answer
}

// name is that of an operation of ours; others may be named anything.
func (r Request) name() string {
	if r.Operation == nil {
		return "graphql"
	}
	return r.Operation.Definition().Name
}

func (e *Executor) execute(ctx context.Context, req Request) *Answer {
	ctx, opCtx, cost, refusal := e.prepare(ctx, req)
	switch {
	case refusal != nil:
		return refusal
	case opCtx.Operation.Operation == ast.Subscription:
		return e.refuse(ctx, refused(notAStream))
	}
	return e.run(ctx, opCtx, cost, req.Operation == nil)
}

// prepare checks an operation up to where it can be executed, and prices it.
func (e *Executor) prepare(ctx context.Context, req Request) (context.Context, *graphql.OperationContext, int, *Answer) {
	ctx = graphql.StartOperationTrace(ctx)
	doc, op, errs := e.find(ctx, req)
	if errs != nil {
		return ctx, nil, 0, e.refuse(ctx, errs)
	}
	ctx = withDocument(ctx, doc)
	variables, wrong := readVariables(e.documents.schema, op, req.Variables)
	if wrong != nil {
		return ctx, nil, 0, e.refuse(ctx, refused(wrong))
	}
	opCtx, errs := e.gqlgen.CreateOperationContext(ctx, &graphql.RawParams{
		Query: req.Query, OperationName: req.OperationName, Variables: variables,
	})
	if errs != nil {
		e.log.ErrorContext(ctx, "variables that fit were not taken", "cause", errs, "request_id", problem.RequestID(ctx))
		return ctx, nil, 0, e.refuse(ctx, refused(problem.New(problem.BadInput, "The variables do not fit the operation.")))
	}
	cost, found := price(op, opCtx.Variables, e.tools())
	var refusal *problem.Problem
	switch {
	case found.null != "":
		refusal = problem.New(problem.BadInput, "%s: must not be null.", found.null)
	case found.keyed && !auth.CallerFrom(ctx).MayReadEmbeddings():
		refusal = problem.New(problem.Unauthenticated, "Embeddings need an API key.")
	case req.Operation == nil: // our own cost what they cost
		refusal = checkCost(cost, e.limits)
	}
	if refusal != nil {
		answer := e.refuse(ctx, refused(refusal))
		answer.Cost = cost
		return ctx, nil, cost, answer
	}
	e.documents.keep(doc)
	return ctx, opCtx, cost, nil
}

// run executes a valid operation, within its time and, if it is a caller's
// own, within the size of a response.
func (e *Executor) run(ctx context.Context, opCtx *graphql.OperationContext, cost int, limited bool) *Answer {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Time)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	answer := &Answer{Cost: cost}
	dispatch := func(ctx context.Context) {
		if limited {
			ctx = withResponseSize(ctx, &responseSize{limit: e.limits.Response, end: end})
		}
		handler, ctx := e.gqlgen.DispatchOperation(ctx, opCtx)
		if response := handler(ctx); response != nil {
			answer.Data, answer.Errors = response.Data, response.Errors
		}
	}
	var reading *reading
	edition := e.cache.Edition() // before anything is read
	var err error
	if answer.Timeless = !readsCatalog(opCtx.Operation); answer.Timeless {
		dispatch(ctx)
	} else {
		err = e.catalog.Reading(ctx, func(ctx context.Context, release *ent.Release) error {
			if release != nil {
				answer.Release, answer.UpdatedAt = release.ID, release.FeedDate
			}
			reading = newReading(release, e, edition)
			dispatch(withReading(ctx, reading))
			return reading.failed // half an answer is none
		})
	}
	var tooLarge *problem.Problem
	switch {
	case errors.As(context.Cause(ctx), &tooLarge):
		err = tooLarge
	case ctx.Err() != nil:
		err = ctx.Err() // whatever it looked like to the database
	case err == nil && answer.Timeless:
		return answer
	case err == nil && answer.Data != nil:
		reading.keep()
		return answer
	}
	p := problem.Of(err)
	switch {
	case p.Code == problem.Internal:
		p = &problem.Problem{Code: problem.Unavailable, Message: "The catalog cannot be read at the moment.", Cause: err}
	case p.Code == problem.Timeout && opCtx.RawQuery != "": // our own operations have no text
		p = e.timedOut(err)
	}
	if !errors.Is(err, context.Canceled) && p.Code != problem.ResponseTooLarge && p.Code != problem.QueryTimeout {
		e.log.ErrorContext(ctx, "an operation failed", "code", p.Code, "cause", err, "request_id", problem.RequestID(ctx))
	}
	failed := e.refuse(ctx, refused(p))
	failed.Cost, failed.Cause = cost, err
	return failed
}

func (e *Executor) refuse(ctx context.Context, errs gqlerror.List) *Answer {
	for _, err := range errs {
		withRequestID(ctx, err)
	}
	return &Answer{Errors: errs}
}

// find returns the operation of a request, and the document that it is in.
func (e *Executor) find(ctx context.Context, req Request) (*document, *ast.OperationDefinition, gqlerror.List) {
	if own := req.Operation; own != nil {
		return &own.document, own.Definition(), nil
	}
	doc := documentFrom(ctx) // of the same request, parsed a moment ago
	if doc == nil || doc.text != req.Query {
		var errs gqlerror.List
		if doc, errs = e.documents.get(req.Query); errs != nil {
			return nil, nil, errs
		}
	}
	op, errs := operationOf(doc.QueryDocument, req.OperationName)
	return doc, op, errs
}

// understand checks a request up to where it can be executed, and brings it into
// the one form that stands for all ways to write it.
func (e *Executor) understand(ctx context.Context, req Request) (*understood, *Answer) {
	ctx, opCtx, _, refusal := e.prepare(ctx, req)
	if refusal != nil {
		return nil, refusal
	}
	variables, wrong := readVariables(e.documents.schema, opCtx.Operation, req.Variables)
	written, err := json.Marshal(variables) // sorted by name
	if wrong != nil || err != nil {
		return nil, e.refuse(ctx, refused(problem.New(problem.BadInput, "The variables do not fit the operation.")))
	}
	doc := documentFrom(ctx)
	return &understood{
		request:  Request{Query: req.Query, OperationName: req.OperationName, Variables: variables},
		question: cache.Question{Operation: req.OperationName + "\n" + doc.id, Variables: string(written)},
		stream:   opCtx.Operation.Operation == ast.Subscription,
		document: doc,
	}, nil
}

// weight is what a request takes in memory.
func (r Request) weight() int { return len(r.Query) + len(r.OperationName) + weightOf(r.Variables) }

// weightOf is what a decoded JSON value takes in memory.
func weightOf(value any) int {
	const header, perItem, perObject = 32, 16, 300
	switch v := value.(type) {
	case string:
		return header + len(v)
	case []any:
		weight := header
		for _, item := range v {
			weight += perItem + weightOf(item)
		}
		return weight
	case map[string]any:
		weight := perObject
		for name, item := range v {
			weight += header + len(name) + perItem + weightOf(item)
		}
		return weight
	}
	return header
}

// EndStreams ends streams where release numbers start again: the position of their
// readers no longer exists, and they reconnect.
func (e *Executor) EndStreams() { e.news.restart() }

// operationOf picks the operation that a request names.
func operationOf(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, gqlerror.List) {
	if name == "" && len(doc.Operations) > 1 {
		return nil, refused(problem.New(problem.BadInput, "The document has several operations: name one with operationName."))
	}
	op := doc.Operations.ForName(name)
	if op == nil {
		return nil, refused(problem.New(problem.BadInput, "The document has no operation of that name."))
	}
	return op, nil
}

// readsCatalog tells questions about the data from those about the schema.
func readsCatalog(op *ast.OperationDefinition) bool {
	for _, selection := range op.SelectionSet {
		if field, ok := selection.(*ast.Field); !ok || (field.Name != "__schema" && field.Name != "__type" && field.Name != "__typename") {
			return true
		}
	}
	return false
}
