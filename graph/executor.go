package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/generated"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// Config configures an Executor.
type Config struct {
	Catalog release.Database
	Credit  string // the line to display wherever the data is reused
	Limits  document.Limits
	Log     *slog.Logger
	// Cache stores parsed documents and counts; by default, a small one of its own.
	Cache *cache.Cache
	// Tools returns the number of tools in the catalog, which determines the cost
	// of some fields; by default, that of a large catalog.
	Tools func() int
	// Trace is called at the start of an operation with the name of the server's own
	// operation, or "graphql" for callers' operations. It returns a function that is called
	// at the end with the code of a server error, or "". It may be nil.
	Trace func(ctx context.Context, name string) (context.Context, func(failure string))
	// CheckKey returns why the caller in a context may not read what requires an API key;
	// nil if it may.
	CheckKey func(context.Context) *problem.Problem
	// Healthy reports whether the database is available, so that callers are not
	// blamed for a timeout while it is not. It may be nil.
	Healthy func() bool
}

// Executor executes operations for GraphQL, REST and all other interfaces.
type Executor struct {
	*journal.Announcements
	*release.Catalog // in memory
	config           Config
	schema           graphql.ExecutableSchema
	documents        *document.Parser
}

// Request is an operation to execute: a caller's, as text, or one of the
// server's own.
type Request struct {
	Query         string
	OperationName string
	Operation     *Operation
	Variables     map[string]any
	AsOf          AsOf      // for operations without @asOf
	Scan          *Scan     // of the pages of a list; nil for a single execution
	Prepared      *Prepared // the result of Prepare, if it was called before
}

// fromCaller reports whether the limits for callers apply.
func (r Request) fromCaller() bool { return r.Operation == nil || r.Operation.limited }

// earlierShare limits earlier releases to this fraction of the memory budget: a
// quarter.
const earlierShare = 4

// defaultCacheSize is the size of the cache of an executor without a shared one.
const defaultCacheSize = 16 << 20

// NewExecutor returns an executor. It panics if tools cannot be sorted as the schema says,
// or if its directives are wrong, before the server accepts requests.
func NewExecutor(cfg Config) *Executor {
	schema := generated.NewExecutableSchema(generated.Config{Resolvers: Resolver{}, Schema: Schema()})
	if err := cmp.Or(checkFields(schema.Schema()), document.CheckPrices(schema.Schema())); err != nil {
		panic(err)
	}
	if cfg.Cache == nil {
		cfg.Cache = cache.New(defaultCacheSize, nil, cfg.Log)
	}
	if cfg.Tools == nil {
		cfg.Tools = func() int { return document.ReferenceTools }
	}
	catalog := release.NewCatalog(cfg.Catalog, cfg.Log, cfg.Cache.Size()/earlierShare, cfg.Cache.Reserve)
	return &Executor{
		config:    cfg,
		schema:    schema,
		documents: document.NewParser(schema.Schema(), cfg.Limits, cfg.Cache),
		Catalog:   catalog,
		Announcements: journal.NewAnnouncements(
			func() *ent.JournalEntryClient { return cfg.Catalog.Client().JournalEntry },
			func(ctx context.Context) (int, error) {
				newest, err := catalog.Newest(ctx)
				if err != nil {
					return 0, err
				}
				return newest.Number(), nil
			},
		),
	}
}

// Execute executes one operation. All failures are in the result.
func (e *Executor) Execute(ctx context.Context, req Request) *Result {
	if e.config.Trace == nil {
		return e.execute(ctx, req)
	}
	name := "graphql" // the names that callers choose are unbounded
	if !req.fromCaller() {
		name = req.Operation.Definition().Name
	}
	ctx, end := e.config.Trace(ctx, name)
	result := e.execute(ctx, req)
	code := problem.Code(document.Code(result.Errors))
	if code != problem.Internal && code != problem.Unavailable && code != problem.Timeout {
		code = "" // caused by the caller
	}
	end(string(code))
	return result
}

// sizeOf returns what the cost of reading a release depends on.
func (e *Executor) sizeOf(asOf AsOf) document.Size {
	size := document.Size{Tools: e.config.Tools(), Categories: expectedCategories}
	if !asOf.IsNewest() {
		size.Earlier = size.Tools
	}
	if newest := e.InMemory(); newest != nil {
		size.Categories, size.Points, size.Periods = len(newest.Categories), newest.CountPoints, newest.CountPeriods
		if info := newest.ReadableAsOf(asOf); info != nil {
			size.Earlier = max(1, info.ToolsTotal)
		}
	}
	return size
}

// expectedCategories is the number of categories before the catalog is loaded.
const expectedCategories = 20

// Cost returns the cost of a caller's operation, and its limit, without executing
// it.
func (e *Executor) Cost(ctx context.Context, req Request) (cost, limit int, err error) {
	op, rejection := e.Prepare(ctx, req)
	if rejection != nil {
		return rejection.Cost, e.config.Limits.Cost, problem.New(problem.BadInput, "%s", rejection.Errors[0].Message)
	}
	return op.cost, e.config.Limits.Cost, nil
}

// Check returns why a request would be rejected before it is executed; nil if it
// would not.
func (e *Executor) Check(ctx context.Context, req Request) *problem.Problem {
	if _, rejection := e.Prepare(ctx, req); rejection != nil {
		return rejection.Problem()
	}
	return nil
}

func (e *Executor) execute(ctx context.Context, req Request) *Result {
	op, rejection := e.Prepare(ctx, req)
	switch {
	case rejection != nil:
		return rejection
	case op.IsSubscription():
		return e.Reject(ctx, ErrNotAStream)
	}
	return e.run(ctx, op, req.fromCaller())
}

// Prepared is a valid operation with its cost.
type Prepared struct {
	ID        string         // equal operations of equal documents have the same
	Variables map[string]any // without defaults
	operation *graphql.OperationContext
	asOf      AsOf
	scan      *Scan
	cost      int
}

// with returns the operation with other variables.
func (p *Prepared) with(variables map[string]any) *graphql.OperationContext {
	of := p.operation
	return &graphql.OperationContext{
		RawQuery: of.RawQuery, OperationName: of.OperationName, Variables: variables, Doc: of.Doc, Operation: of.Operation, Extensions: of.Extensions,
		RecoverFunc: of.RecoverFunc, ResolverMiddleware: of.ResolverMiddleware, RootResolverMiddleware: of.RootResolverMiddleware,
	}
}

// IsSubscription reports whether the operation is served as a stream.
func (p *Prepared) IsSubscription() bool { return p.operation.Operation.Operation == ast.Subscription }

// Deprecation returns the earliest deprecation of the fields that the operation
// selects.
func (p *Prepared) Deprecation() *document.Deprecation {
	return document.EarliestDeprecation(p.operation.Operation)
}

// Prepare validates an operation and calculates its cost, or returns the result that
// rejects it.
func (e *Executor) Prepare(ctx context.Context, req Request) (*Prepared, *Result) {
	if req.Prepared != nil {
		return req.Prepared, nil
	}
	doc, op, errs := e.findOperation(req)
	if errs != nil {
		return nil, reject(ctx, errs)
	}
	variables, withDefaults, p := document.Variables(e.schema.Schema(), op, req.Variables)
	if p != nil {
		if p.Cause != nil {
			e.config.Log.ErrorContext(ctx, "gqlparser rejected checked variables",
				"cause", p.Cause, "request_id", problem.RequestID(ctx))
		}
		return nil, e.Reject(ctx, p)
	}
	var cost document.Cost
	asOf, limit := req.AsOf, e.config.Limits.Cost
	if req.fromCaller() {
		var err error
		if asOf, err = asOfOperation(op, withDefaults, req.AsOf); err != nil {
			return nil, e.Reject(ctx, problem.Of(err))
		}
		cost = document.Calculate(op, withDefaults, e.sizeOf(asOf))
	} else {
		cost.NeedsKey = req.Operation.needsKey
	}
	if cost.NeedsKey {
		p = e.config.CheckKey(ctx)
	}
	switch {
	case cost.NullArgument != "":
		p = problem.New(problem.BadInput, "%s must not be null.", cost.NullArgument)
	case p != nil:
	case req.fromCaller() && cost.Total > limit:
		p = problem.New(problem.TooComplex,
			"The operation costs %d, which exceeds the limit of %d. "+
				"Request fewer items, fields or filtered lists at once.", cost.Total, limit)
	}
	if p != nil {
		rejection := e.Reject(ctx, p)
		rejection.Cost = cost.Total
		return nil, rejection
	}
	if req.Operation == nil {
		e.documents.Cache(doc)
	}
	return &Prepared{
		ID: req.OperationName + "\n" + doc.ID, Variables: variables, asOf: asOf, scan: req.Scan, cost: cost.Total,
		operation: &graphql.OperationContext{
			RawQuery: req.Query, OperationName: req.OperationName, Variables: withDefaults,
			Doc: doc.QueryDocument, Operation: op, Extensions: doc.Extensions,
			RecoverFunc: recoverPanic, ResolverMiddleware: noteFailure, RootResolverMiddleware: limitResponse,
		},
	}, nil
}

func recoverPanic(_ context.Context, recovered any) error {
	return &problem.Problem{Code: problem.Internal, Message: "Something went wrong on our side.",
		Cause: fmt.Errorf("panic: %v\n%s", recovered, debug.Stack())}
}

// withErrors returns a context that collects the errors of one response.
func (e *Executor) withErrors(ctx context.Context) context.Context {
	return graphql.WithResponseContext(ctx, func(ctx context.Context, err error) *gqlerror.Error {
		return presentError(ctx, e.config.Log, err)
	}, recoverPanic)
}

// run executes a valid operation within its time limit and, for a caller's
// operation, within the size limit of responses.
func (e *Executor) run(ctx context.Context, op *Prepared, fromCaller bool) *Result {
	ctx, cancelTimeout := context.WithTimeout(ctx, e.config.Limits.Time)
	defer cancelTimeout()
	var cancel context.CancelCauseFunc
	if fromCaller {
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
	}
	result := &Result{Cost: op.cost, AsOf: op.asOf}
	operation := op.operation
	dispatch := func(ctx context.Context) {
		if fromCaller {
			limit := e.config.Limits.Response
			ctx = context.WithValue(ctx, responseSizeKey{}, &responseSize{limit, limit, cancel})
		}
		ctx = e.withErrors(graphql.WithOperationContext(ctx, operation))
		result.Data, result.Errors = e.schema.Exec(ctx)(ctx).Data, graphql.GetErrors(ctx)
	}
	read := func(of *release.Release, newest int) (queried bool, err error) {
		if result.Newest = newest; of.Info != nil {
			result.setRelease(of.Info)
		}
		if resolved := resolveDates(op.operation.Operation.VariableDefinitions, op.operation.Variables, of); resolved != nil {
			operation = op.with(resolved)
		}
		reader := newReader(e, of, op.asOf, op.scan)
		dispatch(context.WithValue(ctx, readerKey{}, reader))
		result.Total, result.Next, result.Unknown = reader.total, reader.next, reader.unknown
		return reader.queried, reader.failed // partial data is never returned
	}
	var err error
	if result.SchemaOnly = document.SchemaOnly(op.operation.Operation); result.SchemaOnly {
		dispatch(ctx)
	} else {
		err = e.Read(ctx, op.asOf, read)
	}
	var tooLarge *problem.Problem
	switch {
	case errors.As(context.Cause(ctx), &tooLarge):
		err = tooLarge
	case !result.SchemaOnly && (!e.Loaded() || ctx.Err() != nil && e.InMemory().Partial()): // the caller is not to blame, however long it takes
		err = &problem.Problem{Code: problem.Unavailable, Message: catalogUnavailable, Cause: err}
	case ctx.Err() != nil:
		err = ctx.Err() // databases report it in different ways
	case err == nil && result.SchemaOnly:
		return result
	case err == nil && result.Data != nil:
		return result
	}
	return e.fail(ctx, err, fromCaller, op.cost)
}

// Preload loads the newest release, so that operations do not have to.
func (e *Executor) Preload(ctx context.Context) error {
	_, err := e.Load(ctx)
	return err
}

// fail returns the result of an operation that failed as a whole.
func (e *Executor) fail(ctx context.Context, err error, fromCaller bool, cost int) *Result {
	p := problem.Of(err)
	switch {
	case p.Code == problem.Internal:
		p = &problem.Problem{Code: problem.Unavailable, Message: catalogUnavailable, Cause: err}
	case p.Code == problem.Timeout && fromCaller:
		p = e.timeoutProblem(err)
	}
	if !errors.Is(err, context.Canceled) && p.Code != problem.ResponseTooLarge &&
		p.Code != problem.QueryTimeout && p.Code != problem.NotFound {
		e.config.Log.ErrorContext(ctx, "operation failed",
			"code", p.Code, "cause", err, "request_id", problem.RequestID(ctx))
	}
	result := e.Reject(ctx, p)
	result.Cost, result.Cause = cost, err
	return result
}

// Reject returns the result of a request that cannot be executed.
func (e *Executor) Reject(ctx context.Context, p *problem.Problem) *Result {
	return reject(ctx, document.Errors(p))
}

func reject(ctx context.Context, errs gqlerror.List) *Result {
	for _, err := range errs {
		withRequestID(ctx, err)
	}
	return &Result{Errors: errs}
}

// Limits returns the limits for callers.
func (e *Executor) Limits() document.Limits { return e.config.Limits }

// Log returns the log that failures of operations are written to.
func (e *Executor) Log() *slog.Logger { return e.config.Log }

// Persisted returns the text of a document that was executed, by its SHA-256 hash in
// hexadecimal; "" if it is not cached.
func (e *Executor) Persisted(hash string) string {
	if doc := e.documents.Find(hash); doc != nil {
		return doc.Text
	}
	return ""
}

// findOperation returns the operation of a request and its document.
func (e *Executor) findOperation(req Request) (*document.Document, *ast.OperationDefinition, gqlerror.List) {
	if req.Operation != nil {
		return req.Operation.Document, req.Operation.Definition(), nil
	}
	doc, errs := e.documents.Parse(req.Query)
	if errs != nil {
		return nil, nil, errs
	}
	op, p := doc.Select(req.OperationName)
	if p != nil {
		return nil, nil, document.Errors(p)
	}
	return doc, op, nil
}
