// Package saved serves saved GraphQL queries, each at its own URL, as JSON, CSV or
// NDJSON. The address of a query is the path of its URL without an extension.
package saved

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/rest"
)

// Config configures saved queries.
type Config struct {
	Service  rest.Config
	Store    *store.Store
	Executor *graph.Executor
	Cache    *cache.Cache
	Mail     *mail.Mailer
	Log      *slog.Logger
	BuiltIn  []BuiltIn
	// Page serves browsers; they get JSON if it is nil.
	Page http.Handler
}

// BuiltIn is a public query that belongs to the service itself.
type BuiltIn struct{ Name, Description, Text string }

// Handle is the handle of the service's own queries.
const Handle = "palmares"

// Queries manages and serves saved queries.
type Queries struct {
	Config
	builtIn  map[string]*record // by address
	changes  atomic.Int64
	saving   sync.Map // accounts that are saving a query
	records  lookups[*record]
	tokens   lookups[tokenOwner]
	requests *cache.Table[*request]
}

// New returns the saved queries of a database. An error is a mistake in a
// built-in query.
func New(cfg Config) (*Queries, error) {
	s := &Queries{Config: cfg, builtIn: map[string]*record{}, requests: cache.NewTable[*request](cfg.Cache, "saved requests")}
	s.records.table, s.records.changes = cache.NewTable[*cachedValue[*record]](cfg.Cache, "saved queries"), &s.changes
	s.tokens.table, s.tokens.changes = cache.NewTable[*cachedValue[tokenOwner]](cfg.Cache, "query tokens"), &s.changes
	for _, b := range cfg.BuiltIn {
		q, err := newQuery(cfg.Executor, b.Text)
		if err != nil {
			return nil, fmt.Errorf("built-in query %s: %w", b.Name, err)
		}
		for _, address := range []string{namedAddress(Handle, b.Name), hashAddress(hashOf(b.Text))} {
			s.builtIn[address] = &record{query: q, text: b.Text, state: state{address: address, name: b.Name, description: b.Description, hash: hashOf(b.Text), public: true}}
		}
	}
	return s, nil
}

func namedAddress(handle, name string) string { return Path + handle + "/" + name }
func hashAddress(hash string) string          { return Path + hash }

const tokenPrefix = "qt_"

// Names and handles are in lower case, so that none differ only in case, and in
// ASCII, so that no two look the same.
var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	handlePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])$`)
	hashPattern   = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d}$", hashLength))
	tokenPattern  = regexp.MustCompile("^" + tokenPrefix + "[A-Z2-7]{26}$")
	likeHash      = regexp.MustCompile(`^[0-9a-f]{16,}$`)

	reservedNames   = []string{documentName, "new", "edit", "index", "search"}
	reservedHandles = []string{Handle, "account", "accounts", "admin", "api", "docs", "explorer", "feeds", "graphql", "guides", "help", "login", "me", "new", "openapi",
		"public", "q", "queries", "root", "search", "security", "service", "settings", "status", "support", "system", "tools",
		// route words and languages
		"about", "assets", "avis", "categories", "changelog", "changes", "cimetiere", "comparatifs", "compare", "contact", "files", "healthz",
		"licence", "license", "llms", "logout", "mcp", "method", "oauth", "prices", "pricing", "privacy", "readyz", "releases", "robots",
		"schemas", "sitemap", "sitemaps", "stripe", "terms", "trends", "well-known", "www",
		"de", "en", "es", "fr", "it", "nl", "pt"}
	// reservedPrefixes prevent handles that look like the service, or like an encoded name.
	reservedPrefixes = []string{Handle, "xn--"}
)

func checkName(name string) error {
	switch {
	case !namePattern.MatchString(name):
		return problem.New(problem.BadInput, "The name must have 1 to 64 lower-case letters a to z, digits and hyphens, with no hyphen at either end (got %q).", params.Truncate(name))
	case slices.Contains(reservedNames, name) || likeHash.MatchString(name):
		return problem.New(problem.BadInput, "The name %q is reserved or looks like a hash; choose another.", name)
	}
	return nil
}

func checkHandle(handle string) error {
	switch {
	case !handlePattern.MatchString(handle):
		return problem.New(problem.BadInput, "The handle must have 2 to 32 lower-case letters a to z, digits and hyphens, start with a letter and not end with a hyphen (got %q).", params.Truncate(handle))
	case slices.Contains(reservedHandles, handle) || slices.ContainsFunc(reservedPrefixes, func(prefix string) bool {
		return strings.HasPrefix(handle, prefix)
	}) || likeHash.MatchString(handle):
		return problem.New(problem.BadInput, "The handle %q is reserved or looks like a hash; choose another.", handle)
	}
	return nil
}

const (
	// MaxDescription is the maximum length of a description, in characters.
	MaxDescription = 500
	// maxVersionsPerDay limits what an account can store, because versions are not
	// deleted with their saved queries.
	maxVersionsPerDay = 100
)

func checkDescription(text string) error {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if !params.IsText(text) || utf8.RuneCountInString(text) > MaxDescription || strings.ContainsFunc(text, control) {
		return problem.New(problem.BadInput, "The description must have at most %d characters and no control characters.", MaxDescription)
	}
	return nil
}

// NewQuery is a query to save. The handle is required the first time.
type NewQuery struct {
	Name, Handle, Text, Description string
	Public                          bool
	// Count is called before the query is executed. If it returns an error, the query is
	// not saved. It may be nil.
	Count func() error
}

// Query is a saved query as its owner sees it.
type Query struct {
	*ent.SavedQuery
	Suspended        bool
	Named, Permanent string // URLs of the query and of its current version
}

// Save checks the name and the limits, then executes the query once and stores it. An
// existing query of the same name gets the new text. An account can save one query at a
// time.
func (s *Queries) Save(ctx context.Context, owner *ent.Account, n NewQuery) (*Query, error) {
	n.Description = strings.TrimSpace(strings.ReplaceAll(n.Description, "\r\n", "\n"))
	if err := cmp.Or(checkName(n.Name), checkDescription(n.Description)); err != nil {
		return nil, err
	}
	if _, busy := s.saving.LoadOrStore(owner.ID, true); busy {
		return nil, problem.New(problem.TooMany, "Another query of the account is being saved. Try again when it has finished.")
	}
	defer s.saving.Delete(owner.ID)
	q, err := newQuery(s.Executor, n.Text)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.store(ctx, owner.ID, n, true); !errors.Is(err, errChecked) {
		return nil, err
	}
	if n.Count != nil {
		if err := n.Count(); err != nil {
			return nil, err
		}
	}
	err = q.try(ctx, auth.Plan(owner.Plan), func(ctx context.Context, r graph.Request) *problem.Problem {
		return s.Executor.Execute(ctx, r).Problem()
	})
	if err != nil {
		return nil, err
	}
	owner, row, err := s.store(ctx, owner.ID, n, false)
	if err != nil {
		return nil, err
	}
	s.changes.Add(1)
	return s.Find(ctx, owner, row.Name)
}

// errChecked undoes a transaction that was only a check.
var errChecked = errors.New("checked")

// store stores a query and the handle of its account, or only checks whether it could.
func (s *Queries) store(
	ctx context.Context, accountID int, n NewQuery, check bool,
) (owner *ent.Account, row *ent.SavedQuery, err error) {
	// The account's row is locked, so that concurrent calls cannot exceed the limits.
	err = s.Store.WithRowLock(ctx, account.Table, accountID, func(tx *ent.Tx) (err error) {
		if owner, err = tx.Account.Get(ctx, accountID); err != nil {
			return err
		}
		if err := chooseHandle(ctx, tx, owner, n.Handle); err != nil {
			return err
		}
		if row, err = save(ctx, tx, owner, n); err == nil && check {
			return errChecked
		}
		return err
	})
	if ent.IsConstraintError(err) {
		err = errTaken(n.Handle)
	}
	return owner, row, err
}

func errTaken(handle string) error {
	return problem.New(problem.BadInput, "The handle %q is taken; choose another.", handle)
}

// try executes or checks a query with sample values for variables without a default.
func (q *query) try(ctx context.Context, plan auth.Plan, with func(context.Context, graph.Request) *problem.Problem) error {
	samples := q.samples()
	p := with(auth.WithCaller(ctx, auth.Caller{Plan: plan}), graph.Request{Operation: q.operation, Variables: samples})
	if p == nil || len(samples) > 0 && p.Code == problem.BadInput { // the sample values may be invalid
		return nil
	}
	return p
}

// chooseHandle sets the handle of an account that has none.
func chooseHandle(ctx context.Context, tx *ent.Tx, owner *ent.Account, handle string) error {
	switch {
	case owner.Handle != nil && (handle == "" || handle == *owner.Handle):
		return nil
	case owner.Handle != nil:
		return problem.New(problem.BadInput, "The account already has the handle %q, which cannot be changed.", *owner.Handle)
	case handle == "":
		return problem.New(problem.BadInput, "The account has no handle yet. Choose one: it becomes part of the URLs of its saved queries and cannot be changed later.")
	}
	if err := checkHandle(handle); err != nil {
		return err
	}
	switch former, err := auth.IsFormerHandle(ctx, tx, handle); {
	case err != nil:
		return err
	case former:
		return errTaken(handle)
	}
	owner.Handle = &handle
	return tx.Account.UpdateOne(owner).SetHandle(handle).Exec(ctx)
}

// save stores a query within the limits of its account.
func save(ctx context.Context, tx *ent.Tx, owner *ent.Account, n NewQuery) (*ent.SavedQuery, error) {
	rows, err := tx.SavedQuery.Query().Where(savedquery.AccountID(owner.ID)).All(ctx)
	if err != nil {
		return nil, err
	}
	hash := hashOf(n.Text)
	at := slices.IndexFunc(rows, func(row *ent.SavedQuery) bool { return row.Name == n.Name })
	if terms := auth.Plan(owner.Plan).Terms(); at < 0 && len(rows) >= terms.SavedQueries {
		return nil, problem.New(problem.Forbidden, "The %s plan includes %d saved queries, and all of them are in use. Delete one first.", terms.Name, terms.SavedQueries)
	}
	publicElsewhere := slices.ContainsFunc(rows, func(row *ent.SavedQuery) bool { return row.Name != n.Name && row.Hash == hash && row.Public })
	if err := addVersion(ctx, tx, owner, n.Text, n.Public || publicElsewhere); err != nil {
		return nil, err
	}
	if at < 0 {
		return tx.SavedQuery.Create().SetAccountID(owner.ID).SetName(n.Name).SetHash(hash).SetDescription(n.Description).SetPublic(n.Public).Save(ctx)
	}
	return rows[at].Update().SetHash(hash).SetDescription(n.Description).SetPublic(n.Public).
		SetBrokenReason("").SetNotifyOwner(false).SetUpdatedAt(time.Now().UTC()).Save(ctx)
}

// addVersion stores a text, unless the account has saved it before.
func addVersion(ctx context.Context, tx *ent.Tx, owner *ent.Account, text string, public bool) error {
	n, err := tx.QueryVersion.Update().Where(queryversion.Hash(hashOf(text)), queryversion.AccountID(owner.ID)).SetPublic(public).Save(ctx)
	if err != nil || n > 0 {
		return err
	}
	recent, err := tx.QueryVersion.Query().Where(queryversion.AccountID(owner.ID), queryversion.CreatedAtGT(time.Now().Add(-24*time.Hour).UTC())).Count(ctx)
	if err != nil {
		return err
	}
	if recent >= maxVersionsPerDay {
		return problem.New(problem.TooMany, "An account can save at most %d different query texts within 24 hours. Try again later.", maxVersionsPerDay)
	}
	return tx.QueryVersion.Create().SetHash(hashOf(text)).SetAccountID(owner.ID).SetText(text).SetPublic(public).Exec(ctx)
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
	return &Query{SavedQuery: row, Suspended: isSuspended(owner, all, row.ID),
		Named: s.Service.PublicURL + namedAddress(handle, row.Name), Permanent: s.Service.PublicURL + hashAddress(row.Hash)}
}

// Public returns the public queries of all accounts whose name, handle or
// description contains a text, newest first, and whether there are more. Those of
// the service are in BuiltIn.
func (s *Queries) Public(ctx context.Context, search string, limit, offset int) (list []*Query, more bool, err error) {
	rows, err := s.Store.Read.SavedQuery.Query().
		Where(savedquery.Public(true), savedquery.BrokenReason(""), savedquery.Or(savedquery.NameContains(search),
			savedquery.DescriptionContainsFold(search), savedquery.HasAccountWith(account.HandleContains(search)))).
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

// changed returns the error of a statement that changes one saved query.
func (s *Queries) changed(name string, rows int, err error) error {
	s.changes.Add(1)
	if err == nil && rows == 0 {
		return errNoQuery(name)
	}
	return err
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
	n, err := s.Store.Write.SavedQuery.Delete().Where(savedquery.AccountID(owner.ID), savedquery.Name(name)).Exec(ctx)
	return s.changed(name, n, err)
}

// SetToken creates a new token for a saved query, which replaces any previous one,
// and returns it. Only its hash is stored, so it cannot be shown again.
func (s *Queries) SetToken(ctx context.Context, owner *ent.Account, name string) (string, error) {
	token := tokenPrefix + rand.Text()
	hash := tokenHash(token)
	return token, s.setToken(ctx, owner, name, &hash)
}

// RevokeToken removes the token of a saved query.
func (s *Queries) RevokeToken(ctx context.Context, owner *ent.Account, name string) error {
	return s.setToken(ctx, owner, name, nil)
}

func (s *Queries) setToken(ctx context.Context, owner *ent.Account, name string, hash *string) error {
	update := s.Store.Write.SavedQuery.Update().Where(savedquery.AccountID(owner.ID), savedquery.Name(name)).SetNillableTokenHash(hash)
	if hash == nil {
		update.ClearTokenHash()
	}
	n, err := update.Save(ctx)
	return s.changed(name, n, err)
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// checkBatch is how many saved queries are read at a time.
const checkBatch = 100

// Check calls a function with each saved query that this version of the program
// would reject, with its account and the reason. It does not read the catalog, which
// may not have been migrated yet.
func (s *Queries) Check(ctx context.Context, found func(row *ent.SavedQuery, reason error) error) error {
	return s.each(ctx, func(row *ent.SavedQuery, text string) error {
		q, reason := newQuery(s.Executor, text)
		if reason == nil {
			reason = q.try(ctx, auth.Plan(row.Edges.Account.Plan), s.Executor.Check)
		}
		if reason != nil {
			return found(row, reason)
		}
		return nil
	})
}

func (s *Queries) each(ctx context.Context, use func(row *ent.SavedQuery, text string) error) error {
	for last := 0; ; {
		rows, err := s.Store.Read.SavedQuery.Query().Where(savedquery.IDGT(last)).WithAccount().Order(savedquery.ByID()).Limit(checkBatch).All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			last = row.ID
			text, err := s.Text(ctx, &Query{SavedQuery: row})
			if ent.IsNotFound(err) || row.Edges.Account == nil {
				continue // its account has just been deleted
			}
			if err == nil {
				err = use(row, text)
			}
			if err != nil {
				return err
			}
		}
	}
}

// noticeRetry is the time between attempts to send emails.
const noticeRetry = time.Minute

// Run finds queries that this version of the program no longer accepts, and sends
// emails to their owners.
func (s *Queries) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.each(ctx, func(row *ent.SavedQuery, text string) error {
			reason := ""
			if _, err := newQuery(s.Executor, text); err != nil {
				reason = err.Error()
			}
			if reason == row.BrokenReason {
				return nil
			}
			// Only one of several servers makes the change.
			return s.Store.Write.SavedQuery.Update().Where(savedquery.ID(row.ID), savedquery.Hash(row.Hash), savedquery.BrokenReason(row.BrokenReason)).
				SetBrokenReason(reason).SetNotifyOwner(reason != "" && row.BrokenReason == "").Exec(ctx)
		})
		pending := 0
		if err == nil {
			pending, err = s.notifyOwners(ctx)
		}
		if err == nil && pending == 0 {
			return
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("checking saved queries failed", "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(noticeRetry):
		}
	}
}

// notifyOwners sends pending emails and returns how many failed.
func (s *Queries) notifyOwners(ctx context.Context) (failed int, err error) {
	rows, err := s.Store.Read.SavedQuery.Query().Where(savedquery.NotifyOwner(true)).WithAccount().All(ctx)
	for _, row := range rows {
		// Of several servers, the first to clear the flag sends the email.
		n, err := s.Store.Write.SavedQuery.Update().Where(savedquery.ID(row.ID), savedquery.NotifyOwner(true)).SetNotifyOwner(false).Save(ctx)
		if err != nil {
			return failed, err
		}
		if n == 0 || row.Edges.Account == nil {
			continue
		}
		l := lang.Language(row.Edges.Account.Language)
		err = s.Mail.Send(ctx, mail.QueryBroken(l, row.Edges.Account.Email, s.Service.ServiceName, row.Name, row.BrokenReason, s.Service.PublicURL+l.Path("/account/queries")))
		if err == nil {
			continue
		}
		s.Log.Warn("sending an email about a saved query failed", "query", row.ID, "reason", problem.Of(err).Message)
		if problem.Of(err).Code == problem.Unavailable {
			failed++
			if err := s.Store.Write.SavedQuery.UpdateOneID(row.ID).SetNotifyOwner(true).Exec(context.WithoutCancel(ctx)); err != nil {
				return failed, ent.MaskNotFound(err)
			}
		}
	}
	return failed, err
}
