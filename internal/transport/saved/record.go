package saved

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/internal/core/lookup"
	"palmares/internal/core/problem"
)

// record is the query at an address. It never changes.
type record struct {
	state
	presentation
	text   string
	query  *query
	broken error // why there is no query
	weight int   // approximate size in bytes
}

// state is what the database stores about an address.
type state struct {
	address           string // without an extension
	name              string // empty for a hash, as is what is stored
	stored            presentation
	hash              string
	account           int // 0 for a built-in query
	public, suspended bool
}

// find returns the query at an address. If several accounts saved the same text,
// the caller gets a public version or that of their own account.
func (s *Queries) find(ctx context.Context, address string, accountID int) (*record, error) {
	if found, ok := s.builtIn[address]; ok {
		return found, nil
	}
	rest := strings.TrimPrefix(address, Path)
	handle, name, named := strings.Cut(rest, "/")
	switch {
	case named && handlePattern.MatchString(handle) && namePattern.MatchString(name):
	case hashPattern.MatchString(rest):
		address += "\n" + strconv.Itoa(accountID)
	default:
		return nil, errNotFound
	}
	found, err := s.records.GetFresh(ctx, address)
	return found, lookupError(err)
}

// read reads the query at an address, and at that of a hash for an account.
func (s *Queries) read(ctx context.Context, id string, last *record) (*record, int, error) {
	address, accountID, isHash := strings.Cut(id, "\n")
	rest := strings.TrimPrefix(address, Path)
	if isHash {
		callerID, err := strconv.Atoi(accountID)
		if err != nil {
			return nil, 0, err
		}
		row, err := s.Store.Keys.QueryVersion.Query().Where(queryversion.Hash(rest), queryversion.Or(queryversion.Public(true), queryversion.AccountID(callerID))).
			Order(ent.Desc(queryversion.FieldPublic), queryversion.ByID()).First(ctx)
		if err != nil {
			return nil, 0, notFound(err)
		}
		return s.load(ctx, last, state{address: address, hash: row.Hash, account: row.AccountID, public: row.Public})
	}
	handle, name, _ := strings.Cut(rest, "/")
	row, err := s.Store.Keys.SavedQuery.Query().Where(savedquery.Name(name), savedquery.HasAccountWith(account.Handle(handle))).
		WithAccount(func(q *ent.AccountQuery) {
			q.WithSavedQueries(func(q *ent.SavedQueryQuery) { q.Order(oldestFirst...) })
		}).Only(ctx)
	if err != nil || row.Edges.Account == nil {
		return nil, 0, notFound(err)
	}
	return s.load(ctx, last, state{
		address: address, name: name, stored: presentationOf(row), hash: row.Hash, account: row.AccountID, public: row.Public,
		suspended: isSuspended(row.Edges.Account, row.Edges.Account.Edges.SavedQueries, row.ID),
	})
}

// lookupError returns the problem in the error of a lookup.
func lookupError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lookup.ErrNotFound):
		return errNotFound
	}
	return &problem.Problem{Code: problem.Unavailable, Message: "Saved queries cannot be read at the moment. Try again in a minute.", Cause: err}
}

func notFound(err error) error {
	if err == nil || ent.IsNotFound(err) {
		return lookup.ErrNotFound
	}
	return err
}

// load returns the last record if its state has not changed, or a new one.
func (s *Queries) load(ctx context.Context, last *record, current state) (*record, int, error) {
	if last != nil && last.state == current {
		return last, last.weight, nil
	}
	row, err := s.Store.Keys.QueryVersion.Query().Where(queryversion.Hash(current.hash), queryversion.AccountID(current.account)).Only(ctx)
	if err != nil {
		return nil, 0, notFound(err)
	}
	found := &record{state: current, text: row.Text}
	found.query, found.broken = newQuery(s.Executor, row.Text)
	found.weight = requestSize + 2*len(row.Text)
	switch {
	case current.name != "":
		found.presentation = current.stored
	case found.query != nil:
		found.presentation = found.query.present(row.Text)
		found.chart = Chart{} // nobody chose one, so the page decides
	}
	if found.query != nil {
		found.weight += found.query.operation.Weight()
		if list := found.query.list; list != nil && list.whole != nil {
			found.weight += list.whole.Weight()
		}
	}
	return found, found.weight, nil
}

// check returns why a caller may not read a record.
func (r *record) check(caller auth.Caller, invalidToken bool) error {
	isOwner := caller.OwnsQueries(r.account)
	switch {
	case !isOwner && (!r.public || r.suspended):
		return errNotFound
	case r.suspended:
		return problem.New(problem.Forbidden, "This saved query is suspended: the account has more saved queries than its plan includes, and only the oldest remain active. Delete some or upgrade the plan.")
	case invalidToken:
		return problem.New(problem.Unauthenticated, "The token is not valid for this URL or was revoked. The query is public and can be read without a token.")
	case r.broken != nil:
		return problem.New(problem.Gone, "This saved query is no longer valid, because the API has changed. Its owner has to save it again. %s", r.broken)
	case r.query.operation.RequiresKey() && !caller.MayReadEmbeddings():
		return problem.New(problem.Unauthenticated, "This query requires an API key, because it reads embeddings.")
	}
	return nil
}
