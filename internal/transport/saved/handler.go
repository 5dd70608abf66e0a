package saved

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/queryversion"
	"palmares/ent/savedquery"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/rest"
)

const (
	// Path is the start of the addresses of saved queries.
	Path = "/q/"

	documentName = "openapi"
)

// errNotFound is the same for addresses that do not exist and those that the
// caller may not read, so that it does not reveal which private queries exist.
var errNotFound = problem.New(problem.NotFound, "There is no saved query at this address. A private one requires an API key of its account, or its token.")

const mediaJSON, mediaCSV, mediaNDJSON = "application/json", "text/csv", "application/x-ndjson"

var contentTypes = map[string]string{formatJSON: mediaJSON, formatCSV: mediaCSV + "; charset=utf-8; header=present", formatNDJSON: mediaNDJSON}

// record is what is served at an address. It never changes.
type record struct {
	state
	text   string
	query  *query
	broken error // why there is no query
}

// state is what the database has about an address.
type state struct {
	address           string // without an extension
	name, description string // empty for a hash
	hash              string
	account           int // 0 for a built-in query
	public, suspended bool
}

// find returns what is served at an address. If several accounts saved the same
// text, the caller gets a public version or that of their own account.
func (s *Queries) find(ctx context.Context, address string, accountID int) (*cachedValue[*record], error) {
	if found, ok := s.builtIn[address]; ok {
		builtIn := &cachedValue[*record]{value: found}
		return builtIn, nil
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
				address: address, name: name, description: row.Description, hash: row.Hash, account: row.AccountID, public: row.Public,
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
	if found.query != nil {
		weight += found.query.operation.Weight()
	}
	return found, weight, nil
}

// check returns why a caller may not read a record.
func (r *record) check(caller auth.Caller, invalidToken bool) error {
	isOwner := caller.Account != 0 && caller.Account == r.account
	switch {
	case !isOwner && (!r.public || r.suspended):
		return errNotFound
	case r.suspended:
		return problem.New(problem.Forbidden, "This saved query is suspended: the account has more than its plan includes, and only the oldest remain active. Delete others or upgrade.")
	case invalidToken:
		return problem.New(problem.Unauthenticated, "The token is not valid for this address, or was revoked. The query is public: it can be read without one.")
	case r.broken != nil:
		return problem.New(problem.Gone, "This saved query is no longer valid, because the API has changed. Its owner has to save it again. %s", r.broken)
	case r.query.operation.RequiresKey() && !caller.MayReadEmbeddings():
		return problem.New(problem.Unauthenticated, "This query requires an API key, because it reads embeddings.")
	}
	return nil
}

// tokenOwner is the account of a token, and the addresses that it is for.
type tokenOwner struct {
	caller           auth.Caller
	named, permanent string
}

// IdentifyToken is the middleware that makes the owner of a valid token the
// caller of a request without a key.
func (s *Queries) IdentifyToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token := tokenOf(r); token != "" && auth.CallerFrom(r.Context()).Key == "" {
			address, _, _ := splitPath(r.URL.Path)
			found, err := s.findToken(r.Context(), token)
			switch {
			case err != nil && problem.Of(err).Code != problem.NotFound:
				s.Log.ErrorContext(r.Context(), "token lookup failed", "cause", problem.Of(err).Cause, "request_id", problem.RequestID(r.Context()))
				problem.Refuse(w, r, err)
				return
			case err == nil && (address == found.named || address == found.permanent):
				w.Header()["Cdn-Cache-Control"] = []string{"private, no-store"} // the response is this caller's own
				r = r.WithContext(auth.WithCaller(r.Context(), found.caller))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tokenOf returns the token of a request, or "".
func tokenOf(r *http.Request) string {
	for query := r.URL.RawQuery; query != ""; { // without parsing all of it
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if token, found := strings.CutPrefix(pair, tokenName+"="); found {
			return token // those that we issue need no escapes
		}
	}
	return ""
}

// findToken returns the owner of a token.
func (s *Queries) findToken(ctx context.Context, token string) (tokenOwner, error) {
	if !tokenPattern.MatchString(token) { // needs no lookup
		return tokenOwner{}, errNotFound
	}
	hash := tokenHash(token)
	found, err := s.tokens.get(ctx, cache.Key{Operation: hash}, func(ctx context.Context, _ tokenOwner) (tokenOwner, int, error) {
		row, err := s.Store.Keys.SavedQuery.Query().Where(savedquery.TokenHash(hash)).WithAccount().Only(ctx)
		if err != nil || row.Edges.Account == nil || row.Edges.Account.Handle == nil {
			return tokenOwner{}, 0, notFound(err)
		}
		owner := row.Edges.Account
		return tokenOwner{
			caller: auth.Caller{Plan: auth.Plan(owner.Plan), Account: owner.ID, Key: tokenName, Carried: owner.CarriedRequests, CarriedDay: owner.CarriedDay},
			named:  namedAddress(*owner.Handle, row.Name), permanent: hashAddress(row.Hash),
		}, requestSize, nil
	})
	if err != nil {
		return tokenOwner{}, err
	}
	return found.value, nil
}

// splitPath returns the address and the format in a path; "" for no format.
func splitPath(path string) (address, format string, ok bool) {
	address, format, hasFormat := strings.Cut(path, ".")
	return address, format, !hasFormat || contentTypes[format] != ""
}

// IsDocument reports whether a path is that of an OpenAPI document.
func IsDocument(path string) bool {
	return strings.HasPrefix(path, Path) && strings.HasSuffix(path, "/"+documentName+".json")
}

// request is a parsed request. It is shared between callers: nothing changes it.
type request struct {
	from      *cachedValue[*record]
	variables map[string]any
	others    map[string]any
	asOf      graph.AsOf
	format    string
	keyed     bool // the response is only for callers with a key
	vary      string
	cacheKey  cache.Key
	respond   cache.Execute
	err       error // in the parameters
}

// requestSize approximates the memory of a parsed request without its texts.
const requestSize = 1_000

// ServeHTTP serves the addresses of saved queries and their documents.
func (s *Queries) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.serve(w, r)
	if err == nil || r.Context().Err() != nil {
		return
	}
	w.Header().Set("Vary", varyWith(true))
	if release := s.Cache.Newest(); release > 0 {
		w.Header()[graph.ReleaseHeader] = []string{strconv.Itoa(release)}
	}
	if p := problem.Of(err); p.Code.Status() >= http.StatusInternalServerError && p.Cause != nil {
		s.Log.ErrorContext(r.Context(), "saved query failed", "code", p.Code, "cause", p.Cause, "request_id", problem.RequestID(r.Context()))
	}
	problem.Write(w, err)
}

func varyWith(accept bool) string {
	if accept {
		return "Authorization, Accept-Encoding, Accept"
	}
	return "Authorization, Accept-Encoding"
}

func (s *Queries) serve(w http.ResponseWriter, r *http.Request) error {
	if IsDocument(r.URL.Path) {
		return s.serveDocument(w, r)
	}
	req, err := s.prepare(r)
	if err != nil && s.wantsPage(r) {
		return s.servePage(w, r)
	}
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed; use GET or HEAD.", params.Truncate(r.Method))
	}
	if req.vary == varyWith(true) && s.wantsPage(r) {
		return s.servePage(w, r)
	}
	if req.err != nil {
		return req.err
	}
	response, err := s.Cache.Get(r.Context(), req.cacheKey, req.respond)
	if err != nil {
		return err
	}
	return response.Write(w, r)
}

// wantsPage reports whether a request is for a page, or for its Markdown version.
func (s *Queries) wantsPage(r *http.Request) bool {
	_, format, _ := splitPath(r.URL.Path)
	accept := r.Header["Accept"]
	return s.Page != nil && format == "" && (negotiate.Named(accept, "text/html") > 0 || negotiate.Named(accept, "text/markdown") > 0)
}

// servePage serves a page, which executes its query: never for a caller without
// a quota.
func (s *Queries) servePage(w http.ResponseWriter, r *http.Request) error {
	if cache.CachedOnly(r.Context()) {
		return problem.New(problem.NotFound, "The response is not cached.")
	}
	s.Page.ServeHTTP(w, r)
	return nil
}

// prepare returns the request to an address that the caller may read.
func (s *Queries) prepare(r *http.Request) (*request, error) {
	path, caller := r.URL.Path, auth.CallerFrom(r.Context())
	address, format, ok := splitPath(path)
	switch {
	case !params.IsText(path):
		return nil, problem.New(problem.BadInput, "The path contains a NUL character or invalid UTF-8.")
	case !ok:
		return nil, errNotFound
	}
	key := cache.Key{Operation: path, Variables: r.URL.RawQuery, Keyed: caller.Key != ""}
	negotiated := ""
	if accept := r.Header["Accept"]; format == "" && len(accept) > 0 && accept[0] != "*/*" {
		switch negotiate.Accepts(accept, mediaJSON, mediaCSV, mediaNDJSON) {
		case mediaCSV:
			negotiated = formatCSV
		case mediaNDJSON:
			negotiated = formatNDJSON
		}
	}
	if negotiated != "" {
		key.Operation += "\n" + negotiated
	}
	accountID := 0
	if hashPattern.MatchString(strings.TrimPrefix(address, Path)) { // accounts may have saved the same text
		accountID = caller.Account
		key.Operation += "\n" + strconv.Itoa(accountID)
	}
	req, known := s.requests.Get(cache.Timeless, key)
	if !known || req.from.value.account != 0 && !s.records.isFresh(req.from) {
		found, err := s.find(r.Context(), address, accountID)
		if err != nil {
			return nil, err
		}
		if !known || req.from.value != found.value {
			req = s.parse(r, found, format, negotiated, key.Keyed)
			s.requests.Put(cache.Timeless, key, req, requestSize+2*len(key.Operation)+2*len(key.Variables))
		}
	}
	return req, req.from.value.check(caller, caller.Key == "" && tokenOf(r) != "")
}

// parse reads the parameters of a request.
func (s *Queries) parse(r *http.Request, from *cachedValue[*record], format, negotiated string, keyed bool) *request {
	rec := from.value
	req := &request{from: from, vary: varyWith(format == "")}
	if rec.query == nil {
		return req
	}
	if req.variables, req.others, req.err = rec.query.read(r.URL.RawQuery); req.err != nil {
		return req
	}
	if text, given := req.others[asOfName].(string); given {
		req.asOf, req.err = graph.ParseAsOf(text)
	}
	wanted, given := req.others[formatName].(string)
	switch {
	case req.err != nil:
	case given && format != "" && wanted != format:
		req.err = problem.New(problem.BadInput, "format must be %s, the extension of the address (got %q).", format, wanted)
	case given:
		format, req.vary = wanted, varyWith(false)
	case format == "":
		format = cmp.Or(negotiated, formatJSON)
	}
	dialect, _ := req.others[dialectName].(string)
	switch {
	case req.err != nil:
	case dialect != "" && format != formatCSV:
		req.err = problem.New(problem.BadInput, "dialect requires CSV (the extension .csv or format=csv).")
	case format == formatCSV:
		req.err = rec.query.checkTable()
	}
	req.format = format
	req.keyed = !rec.public || rec.query.operation.RequiresKey() || req.asOf.Release > 0 && keyed
	req.cacheKey = cache.Key{
		Operation: rec.address + " " + rec.hash, Keyed: req.keyed,
		Variables: strings.Join([]string{req.vary, format, dialect, req.asOf.String(), rec.query.canonical(req.variables)}, "\n"),
	}
	if !rec.public { // never shared with a public version, nor with another account's
		req.cacheKey.Operation += " of account " + strconv.Itoa(rec.account)
	}
	req.respond = func(ctx context.Context) (*cache.Entry, int, error) { return s.respond(ctx, req) }
	return req
}

// respond executes a request and returns the response with the newest release at
// that time.
func (s *Queries) respond(ctx context.Context, req *request) (*cache.Entry, int, error) {
	query := req.from.value.query
	result := s.Executor.Execute(ctx, graph.Request{Operation: query.operation, Variables: req.variables, AsOf: req.asOf})
	if p := result.Problem(); p != nil {
		return nil, result.Newest, p
	}
	dialect, _ := req.others[dialectName].(string)
	body, err := query.bodyOf(result.Data)
	if err == nil {
		body, err = query.write(body, req.format, dialect)
	}
	if err != nil {
		return nil, 0, err
	}
	return cache.NewEntry(body, s.header(req, result)).Holding(query.operation.Weight()), result.Newest, nil
}

// header returns the headers of a successful response, as on REST. Shared caches
// must not store those of a private query, whose token may be revoked.
func (s *Queries) header(req *request, result *graph.Result) http.Header {
	rec := req.from.value
	header := result.Header(contentTypes[req.format], req.keyed)
	header["Vary"] = []string{req.vary}
	switch {
	case !rec.public && result.Release > 0:
		header["Cache-Control"] = []string{"private, no-cache"}
	case rec.account != 0 && result.AsOf.Release > 0: // not for ever, because its owner may change it or make it private
		header["Cache-Control"] = []string{graph.CacheControl}
	}
	if req.format == formatCSV {
		header["Content-Disposition"] = []string{fmt.Sprintf(`attachment; filename="%s-%d.csv"`, cmp.Or(rec.name, rec.hash), result.Release)}
	}
	if req.asOf.Date != "" {
		header["Content-Location"] = []string{s.address(req, strconv.Itoa(result.Release))}
	}
	if req.asOf.Release > 0 {
		header["Memento-Datetime"] = []string{result.PublishedAt.UTC().Format(http.TimeFormat)}
		header["Link"] = []string{"<" + s.address(req, "") + `>; rel="original"`}
	}
	rec.query.operation.Deprecation().AddTo(header)
	return header
}

// address returns the URL of a request as of a release, or of the newest.
func (s *Queries) address(req *request, asOf string) string {
	rec := req.from.value
	pairs := []string{rec.query.canonical(req.variables)}
	if dialect, given := req.others[dialectName].(string); given {
		pairs = append(pairs, dialectName+"="+dialect)
	}
	if asOf != "" {
		pairs = append(pairs, asOfName+"="+url.QueryEscape(asOf))
	}
	pairs = slices.DeleteFunc(pairs, func(pair string) bool { return pair == "" })
	address := s.Service.PublicURL + rec.address + "." + req.format
	if len(pairs) > 0 {
		address += "?" + strings.Join(pairs, "&")
	}
	return address
}

// View is a saved query with its result, for a page about it.
type View struct {
	Address, Name, Description, Hash, Text string
	Public                                 bool
	Parameters                             []params.Param
	Values                                 map[string]any // of parameters that are given
	Columns                                []string
	Nested                                 string // a field that CSV cannot contain, or ""
	Body                                   json.RawMessage
	Result                                 *graph.Result // nil if a parameter is invalid
	Err                                    error         // what is wrong with the parameters
}

// View executes the query at the address of a request for a page.
func (s *Queries) View(r *http.Request) (*View, error) {
	req, err := s.prepare(r)
	if err != nil {
		return nil, err
	}
	rec := req.from.value
	view := &View{
		Address: rec.address, Name: rec.name, Description: rec.description, Hash: rec.hash, Text: rec.text, Public: rec.public,
		Parameters: rec.query.parameters, Values: req.variables, Columns: rec.query.columns, Nested: rec.query.nested, Err: req.err,
	}
	if req.err != nil {
		return view, nil
	}
	result := s.Executor.Execute(r.Context(), graph.Request{Operation: rec.query.operation, Variables: req.variables, AsOf: req.asOf})
	if p := result.Problem(); p != nil {
		if p.Code.Status() < http.StatusInternalServerError {
			view.Err = p
			return view, nil
		}
		return nil, p
	}
	view.Result = result
	view.Body, err = rec.query.bodyOf(result.Data)
	return view, err
}

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
	// It is free of quota, so it must not cost much.
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

// listFor returns the names of the queries of a handle that the caller may see,
// and what their description depends on.
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
	isOwner = auth.CallerFrom(ctx).Account == owner.ID
	for _, row := range owner.Edges.SavedQueries {
		if (row.Public || isOwner) && !isSuspended(owner, owner.Edges.SavedQueries, row.ID) {
			names = append(names, row.Name)
			version += fmt.Sprintf("%s %s %q\n", row.Name, row.Hash, row.Description)
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
		if err == errNotFound || err == nil && found.value.broken != nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		q := found.value.query.describe()
		q.Path, q.ID = found.value.address, name
		q.Details = html.EscapeString(found.value.description)
		if q.Summary, _, _ = strings.Cut(q.Details, "\n"); q.Summary == "" {
			q.Summary = name
		}
		described = append(described, q)
	}
	return rest.DescribeQueries(s.Service, s.Service.ServiceName+": saved queries of "+handle,
		"Queries that "+handle+" saved. Each has a fixed address, and returns JSON, CSV (`.csv`) or NDJSON (`.ndjson`). The data is free to reuse, provided that you show the credit line `"+s.Service.Credit+"`.", described)
}
