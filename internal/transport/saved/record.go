package saved

import (
	"context"
	"strconv"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// record is the query at an address. It never changes.
type record struct {
	state
	presentation
	text   string
	query  *query
	broken error // why there is no query
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
func (s *Queries) find(ctx context.Context, address string, accountID int) (*cachedValue[*record], error) {
	if found, ok := s.builtIn[address]; ok {
		return &cachedValue[*record]{value: found}, nil
	}
	rest := strings.TrimPrefix(address, Path)
	handle, name, named := strings.Cut(rest, "/")
	switch {
	case named && handlePattern.MatchString(handle) && namePattern.MatchString(name):
		return s.records.get(ctx, cache.Key{Operation: address}, func(ctx context.Context, last *record) (*record, int, error) {
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
		})
	case hashPattern.MatchString(rest):
		key := cache.Key{Operation: address, Variables: strconv.Itoa(accountID)}
		return s.records.get(ctx, key, func(ctx context.Context, last *record) (*record, int, error) {
			row, err := s.Store.Keys.QueryVersion.Query().Where(queryversion.Hash(rest), queryversion.Or(queryversion.Public(true), queryversion.AccountID(accountID))).
				Order(ent.Desc(queryversion.FieldPublic), queryversion.ByID()).First(ctx)
			if err != nil {
				return nil, 0, notFound(err)
			}
			return s.load(ctx, last, state{address: address, hash: row.Hash, account: row.AccountID, public: row.Public})
		})
	}
	return nil, errNotFound
}

func notFound(err error) error {
	if err == nil || ent.IsNotFound(err) {
		return errNotFound
	}
	return err
}

// load returns the last record if its state has not changed, or a new one.
func (s *Queries) load(ctx context.Context, last *record, current state) (*record, int, error) {
	if last != nil && last.state == current {
		return last, 0, nil
	}
	row, err := s.Store.Keys.QueryVersion.Query().Where(queryversion.Hash(current.hash), queryversion.AccountID(current.account)).Only(ctx)
	if err != nil {
		return nil, 0, notFound(err)
	}
	found := &record{state: current, text: row.Text}
	found.query, found.broken = newQuery(s.Executor, row.Text)
	weight := requestSize + 2*len(row.Text)
	switch {
	case current.name != "":
		found.presentation = current.stored
	case found.query != nil:
		found.presentation = found.query.present(row.Text)
		found.chart = Chart{} // nobody chose one, so the page decides
	}
	if found.query != nil {
		weight += found.query.operation.Weight()
	}
	return found, weight, nil
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
