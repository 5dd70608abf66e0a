package saved

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net/http"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/internal/core/cache"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/rest"
)

// serveDocument serves the OpenAPI document of a handle: its public queries, and
// with a key of its account the private ones too.
func (s *Queries) serveDocument(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed; use GET or HEAD.", params.Truncate(r.Method))
	}
	handle := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, Path), "/"+documentName+".json")
	names, version, isOwner, err := s.listFor(r.Context(), handle)
	if err != nil {
		return err
	}
	caching := "no-cache"
	if isOwner {
		caching = "private, no-cache"
	}
	// It does not count against the quota, so it must be cheap.
	response, err := s.Cache.Get(r.Context(), cache.Key{Operation: r.URL.Path, Variables: version, Keyed: isOwner}, func(ctx context.Context) (*cache.Entry, int, error) {
		body, err := s.document(ctx, handle, names)
		return cache.NewEntry(body, http.Header{
			"Content-Type": {mediaJSON}, "Cache-Control": {caching}, "Vary": {varyWith(false)}, "X-Content-Type-Options": {"nosniff"},
		}), s.Cache.Newest(), err
	})
	if err != nil {
		return err
	}
	return response.Write(w, r)
}

// listFor returns the names of the queries of a handle that the caller may see, and
// a version string that changes with their description.
func (s *Queries) listFor(ctx context.Context, handle string) (names []string, version string, isOwner bool, err error) {
	if handle == Handle {
		for _, b := range s.BuiltIn {
			names = append(names, b.Name)
		}
		return names, "", false, nil
	}
	if !handlePattern.MatchString(handle) {
		return nil, "", false, errNotFound
	}
	owner, err := s.Store.Keys.Account.Query().Where(account.Handle(handle)).
		WithSavedQueries(func(q *ent.SavedQueryQuery) { q.Order(oldestFirst...) }).Only(ctx)
	if err != nil {
		return nil, "", false, notFound(err)
	}
	isOwner = auth.CallerFrom(ctx).OwnsQueries(owner.ID)
	for _, row := range owner.Edges.SavedQueries {
		if (row.Public || isOwner) && !isSuspended(owner, owner.Edges.SavedQueries, row.ID) {
			names = append(names, row.Name)
			version += fmt.Sprintf("%s %s %q %q\n", row.Name, row.Hash, row.Title, row.Description)
		}
	}
	return names, version, isOwner, nil
}

// document describes queries of a handle. Descriptions are escaped, because
// documentation is rendered as Markdown.
func (s *Queries) document(ctx context.Context, handle string, names []string) ([]byte, error) {
	var described []rest.Query
	for _, name := range names {
		found, err := s.find(ctx, namedAddress(handle, name), 0)
		if err == errNotFound || err == nil && found.broken != nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		q := found.query.describe()
		q.Path, q.ID = found.address, name
		q.Summary = html.EscapeString(found.title)
		q.Details = cmp.Or(html.EscapeString(found.description), "A saved query of "+handle+".")
		described = append(described, q)
	}
	return rest.DescribeQueries(s.Service, s.Service.ServiceName+": saved queries of "+handle,
		"Queries that "+handle+" saved. Each has a fixed URL, which returns JSON; `.ndjson` and, if the result is a table, `.csv` select another format, and `.metadata.json` describes its columns. The data is free to reuse, provided that you show the credit line `"+s.Service.Credit+"`.", described)
}
