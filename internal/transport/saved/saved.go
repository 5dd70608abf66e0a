// Package saved serves saved GraphQL queries, each at its own URL, as JSON, CSV or
// NDJSON. The address of a query is the path of its URL without an extension.
package saved

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/lookup"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/outbox"
	"palmares/rest"
)

// Config configures saved queries.
type Config struct {
	Service  rest.Config
	Store    *store.Store
	Executor *graph.Executor
	Cache    *cache.Cache
	Log      *slog.Logger
	BuiltIn  []BuiltIn
	// Downloads sends whole lists.
	Downloads *rest.Downloads
}

// BuiltIn is a public query that belongs to the service itself.
type BuiltIn struct {
	Name, Title, Description, Text string
	Chart                          Chart // without a kind, the page decides
}

// Handle is the handle of the service's own queries.
const Handle = "palmares"

// Queries manages and serves saved queries.
type Queries struct {
	Config
	builtIn  map[string]*record // by address
	saving   sync.Map           // accounts that are saving a query
	records  *lookup.Table[*record]
	requests *cache.Table[*request]
}

// New returns the saved queries of a database. An error is a mistake in a
// built-in query.
func New(cfg Config) (*Queries, error) {
	s := &Queries{Config: cfg, builtIn: map[string]*record{}, requests: cache.NewTable[*request](cfg.Cache, "saved requests")}
	s.records = lookup.New(cfg.Cache, "saved queries", s.read)
	for _, b := range cfg.BuiltIn {
		q, err := newQuery(cfg.Executor, b.Text)
		if err != nil {
			return nil, fmt.Errorf("built-in query %s: %w", b.Name, err)
		}
		about := presentation{title: b.Title, description: b.Description, chart: b.Chart}
		for _, address := range []string{namedAddress(Handle, b.Name), hashAddress(hashOf(b.Text))} {
			s.builtIn[address] = &record{query: q, text: b.Text, presentation: about, state: state{address: address, name: b.Name, hash: hashOf(b.Text), public: true}}
		}
	}
	return s, nil
}

func namedAddress(handle, name string) string { return Path + handle + "/" + name }
func hashAddress(hash string) string          { return Path + hash }

// Query is a saved query as its owner sees it.
type Query struct {
	*ent.SavedQuery
	Title, Description string
	Chart              Chart
	Suspended          bool
	Named, Permanent   string // URLs of the query and of its current version
}

// oldestFirst is the order in which a plan includes saved queries.
var oldestFirst = []savedquery.OrderOption{savedquery.ByCreatedAt(), savedquery.ByID()}

// isSuspended reports whether a query exceeds the plan. The oldest remain active.
func isSuspended(owner *ent.Account, oldestFirst []*ent.SavedQuery, id int) bool {
	at := slices.IndexFunc(oldestFirst, func(row *ent.SavedQuery) bool { return row.ID == id })
	return at >= auth.Plan(owner.Plan).Terms().SavedQueries
}

// List returns the saved queries of an account, oldest first.
func (s *Queries) List(ctx context.Context, owner *ent.Account) ([]*Query, error) {
	rows, err := s.Store.Read.SavedQuery.Query().Where(savedquery.AccountID(owner.ID)).Order(oldestFirst...).All(ctx)
	if err != nil {
		return nil, err
	}
	var list []*Query
	for _, row := range rows {
		list = append(list, s.describe(owner, rows, row))
	}
	return list, nil
}

func (s *Queries) describe(owner *ent.Account, all []*ent.SavedQuery, row *ent.SavedQuery) *Query {
	handle := ""
	if owner.Handle != nil {
		handle = *owner.Handle
	}
	about := presentationOf(row)
	return &Query{SavedQuery: row, Title: about.title, Description: about.description, Chart: about.chart, Suspended: isSuspended(owner, all, row.ID),
		Named: s.Service.PublicURL + namedAddress(handle, row.Name), Permanent: s.Service.PublicURL + hashAddress(row.Hash)}
}

// Public returns the public queries of all accounts whose name, handle, title or
// description contains a text, newest first, and whether there are more. Those of
// the service are in BuiltIn.
func (s *Queries) Public(ctx context.Context, search string, limit, offset int) (list []*Query, more bool, err error) {
	rows, err := s.Store.Read.SavedQuery.Query().
		Where(savedquery.Public(true), savedquery.BrokenReason(""), savedquery.Or(savedquery.NameContains(search),
			savedquery.TitleContainsFold(search), savedquery.DescriptionContainsFold(search), savedquery.HasAccountWith(account.HandleContains(search)))).
		WithAccount(func(q *ent.AccountQuery) {
			q.WithSavedQueries(func(q *ent.SavedQueryQuery) { q.Order(oldestFirst...) })
		}).
		Order(savedquery.ByUpdatedAt(entsql.OrderDesc()), savedquery.ByID()).Limit(limit + 1).Offset(offset).All(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows[:min(len(rows), limit)] {
		if owner := row.Edges.Account; owner != nil && !isSuspended(owner, owner.Edges.SavedQueries, row.ID) {
			list = append(list, s.describe(owner, owner.Edges.SavedQueries, row))
		}
	}
	return list, len(rows) > limit, nil
}

// Find returns one of an account's saved queries.
func (s *Queries) Find(ctx context.Context, owner *ent.Account, name string) (*Query, error) {
	list, err := s.List(ctx, owner)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(list, func(q *Query) bool { return q.Name == name }); at >= 0 {
		return list[at], nil
	}
	return nil, errNoQuery(name)
}

func errNoQuery(name string) error {
	return problem.New(problem.NotFound, "The account has no saved query named %q.", params.Truncate(name))
}

// forget makes a change to an account's queries visible.
func (s *Queries) forget(owner *ent.Account) {
	s.records.Forget(func(r *record) bool { return r.account == owner.ID })
}

// changed returns the error of a statement that changes one saved query.
func (s *Queries) changed(owner *ent.Account, name string, rows int, err error) error {
	s.forget(owner)
	if err == nil && rows == 0 {
		return errNoQuery(name)
	}
	return err
}

// SetToken creates a new token for a saved query, which replaces any previous one,
// and returns it. Only its hash is stored, so it cannot be shown again.
func (s *Queries) SetToken(ctx context.Context, owner *ent.Account, name string) (string, error) {
	token, hash := auth.NewQueryToken()
	return token, s.setToken(ctx, owner, name, &hash)
}

// RevokeToken removes the token of a saved query.
func (s *Queries) RevokeToken(ctx context.Context, owner *ent.Account, name string) error {
	return s.setToken(ctx, owner, name, nil)
}

func (s *Queries) setToken(ctx context.Context, owner *ent.Account, name string, hash *string) error {
	update := s.Store.Write.SavedQuery.Update().
		Where(savedquery.AccountID(owner.ID), savedquery.Name(name)).SetNillableTokenHash(hash)
	if hash == nil {
		update.ClearTokenHash()
	}
	n, err := update.Save(ctx)
	return s.changed(owner, name, n, err)
}

// Text returns the current text of a saved query.
func (s *Queries) Text(ctx context.Context, q *Query) (string, error) {
	row, err := s.Store.Read.QueryVersion.Query().Where(queryversion.Hash(q.Hash), queryversion.AccountID(q.AccountID)).Only(ctx)
	if err != nil {
		return "", err
	}
	return row.Text, nil
}

// Delete deletes a saved query. Its versions remain available by their hashes.
func (s *Queries) Delete(ctx context.Context, owner *ent.Account, name string) error {
	n := 0
	err := s.Store.Update(ctx, func(tx *ent.Tx) (err error) {
		if n, err = tx.SavedQuery.Delete().Where(savedquery.AccountID(owner.ID), savedquery.Name(name)).Exec(ctx); err != nil {
			return err
		}
		return outbox.Withdraw(ctx, tx, aboutQuery(owner.ID, name))
	})
	return s.changed(owner, name, n, err)
}
