package saved

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/notify/outbox"
)

// Names and handles are in lower case, so that none differ only in case, and in
// ASCII, so that no two look the same.
var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	handlePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,30}[a-z0-9])$`)
	hashPattern   = regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d}$", hashLength))
	likeHash      = regexp.MustCompile(`^[0-9a-f]{16,}$`)

	reservedNames   = []string{documentName, "new", "edit", "index", "search"}
	reservedHandles = []string{Handle, "account", "accounts", "admin", "api", "docs", "explorer", "feeds", "graphql", "guides", "help", "login", "me", "new", "openapi",
		"public", "q", "queries", "root", "search", "security", "service", "settings", "status", "support", "system", "tools",
		// route words and languages
		"about", "assets", "avis", "categories", "changelog", "changes", "cimetiere", "comparatifs", "compare", "comparisons", "contact", "files", "graveyard", "healthz",
		"licence", "license", "llms", "logout", "mcp", "method", "oauth", "prices", "pricing", "privacy", "readyz", "releases", "robots",
		"schemas", "sitemap", "sitemaps", "stripe", "terms", "trends", "well-known", "www",
		"de", "en", "es", "fr", "it", "nl", "pt"}
	// reservedPrefixes prevent handles that look like the service, or like an encoded name.
	reservedPrefixes = []string{Handle, "xn--"}
)

func checkName(name string) error {
	switch {
	case !namePattern.MatchString(name):
		return problem.New(problem.BadInput, "The name must have 1 to 64 lower-case letters a to z, digits and hyphens, with no hyphen at either end (got %q).", params.Truncate(name)).For("name")
	case slices.Contains(reservedNames, name) || likeHash.MatchString(name):
		return problem.New(problem.BadInput, "The name %q is reserved or looks like a hash; choose another.", name).For("name")
	}
	return nil
}

func checkHandle(handle string) error {
	switch {
	case !handlePattern.MatchString(handle):
		return problem.New(problem.BadInput, "The handle must have 2 to 32 lower-case letters a to z, digits and hyphens, start with a letter and not end with a hyphen (got %q).", params.Truncate(handle)).For("handle")
	case slices.Contains(reservedHandles, handle) || slices.ContainsFunc(reservedPrefixes, func(prefix string) bool {
		return strings.HasPrefix(handle, prefix)
	}) || likeHash.MatchString(handle):
		return problem.New(problem.BadInput, "The handle %q is reserved or looks like a hash; choose another.", handle).For("handle")
	}
	return nil
}

// maxVersionsPerDay limits what an account can store, because versions are not deleted
// with their saved queries.
const maxVersionsPerDay = 100

// NewQuery is a query to save. The handle is required the first time. Without a title, it
// has the one that its text suggests.
type NewQuery struct {
	Name, Handle, Text, Title, Description string
	Chart                                  Chart
	Public                                 bool
	// Edits is whether the chart was chosen for another text. If the new one lacks its
	// columns, the page decides.
	Edits bool
	// Count is called before the query is executed. If it returns an error, the query is
	// not saved. It may be nil.
	Count func() error
}

// Save checks the name and the limits, then executes the query once and stores it. An
// existing query of the same name gets the new text. An account can save one query at a
// time.
func (s *Queries) Save(ctx context.Context, owner *ent.Account, n NewQuery) (*Query, error) {
	n.Title, n.Description = strings.TrimSpace(n.Title), strings.TrimSpace(strings.ReplaceAll(n.Description, "\r\n", "\n"))
	if err := cmp.Or(checkName(n.Name), checkTitle(n.Title), checkDescription(n.Description)); err != nil {
		return nil, err
	}
	if _, busy := s.saving.LoadOrStore(owner.ID, true); busy {
		return nil, problem.New(problem.TooMany, "Another query of the account is being saved. Try again when it has finished.")
	}
	defer s.saving.Delete(owner.ID)
	q, err := newQuery(s.Executor, n.Text)
	if err != nil {
		return nil, problem.Of(err).For("query")
	}
	n.Title = cmp.Or(n.Title, q.present(n.Text).title, words(n.Name))
	if n.Chart, err = q.chartOf(n); err != nil {
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
	if !s.Executor.Loaded() { // in a command: the time limit of requests does not include it
		if err := s.Executor.Preload(ctx); err != nil {
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
	s.forget(owner)
	return s.Find(ctx, owner, row.Name)
}

// Preview executes a query that is not saved, for a page that shows what it would be like.
// Values for its variables are as in JSON.
func (s *Queries) Preview(ctx context.Context, owner *ent.Account, n NewQuery, variables map[string]any) (*View, error) {
	q, err := newQuery(s.Executor, n.Text)
	if err != nil {
		return nil, problem.Of(err).For("query")
	}
	view := &View{Text: n.Text, query: q}
	if view.Chart, err = q.chartOf(n); err != nil {
		return nil, err
	}
	if view.Values, _, err = q.read(params.Canonical(q.parameters, variables)); err != nil {
		return nil, problem.Of(err).For("query")
	}
	if n.Count != nil {
		if err := n.Count(); err != nil {
			return nil, err
		}
	}
	if err := s.execute(auth.WithCaller(ctx, auth.Caller{Plan: auth.Plan(owner.Plan)}), view, graph.AsOf{}); err != nil {
		return nil, err
	}
	return view, view.Err
}

// chartOf returns the chart of a query that is being saved, or what is wrong with it.
func (q *query) chartOf(n NewQuery) (Chart, error) {
	columns := q.columns(q.samples())
	if n.Edits && n.Chart.isLost(columns) {
		return Chart{}, nil
	}
	if !n.Chart.hasAxes() {
		return Chart{Kind: n.Chart.Kind}, n.Chart.check(columns)
	}
	return n.Chart, n.Chart.check(columns)
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
	return problem.New(problem.BadInput, "The handle %q is taken; choose another.", handle).For("handle")
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
		return problem.New(problem.BadInput, "The account already has the handle %q, which cannot be changed.", *owner.Handle).For("handle")
	case handle == "":
		return problem.New(problem.BadInput, "The account has no handle yet. Choose one: it becomes part of the URLs of its saved queries and cannot be changed later.").For("handle")
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
	chart, err := json.Marshal(n.Chart)
	if err != nil {
		return nil, err
	}
	if at < 0 {
		return tx.SavedQuery.Create().SetAccountID(owner.ID).SetName(n.Name).SetHash(hash).
			SetTitle(n.Title).SetDescription(n.Description).SetChart(string(chart)).SetPublic(n.Public).Save(ctx)
	}
	if err := outbox.Withdraw(ctx, tx, aboutQuery(owner.ID, n.Name)); err != nil {
		return nil, err
	}
	return rows[at].Update().SetHash(hash).SetTitle(n.Title).SetDescription(n.Description).SetChart(string(chart)).SetPublic(n.Public).
		SetBrokenReason("").SetUpdatedAt(time.Now().UTC()).Save(ctx)
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
