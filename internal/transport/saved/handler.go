package saved

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/table"
	"palmares/internal/transport/headers"
	"palmares/rest"
)

const (
	// Path is the prefix of the paths of saved queries.
	Path = "/q/"

	documentName = "openapi"
)

// errNotFound is the same for queries that do not exist and queries that the caller
// may not read, so that it does not reveal which private queries exist.
var errNotFound = problem.New(problem.NotFound, "There is no saved query at this URL. A private query requires an API key of its account, or its token.")

const mediaJSON, mediaCSV, mediaNDJSON = "application/json", "text/csv", "application/x-ndjson"

var contentTypes = map[string]string{formatJSON: mediaJSON, table.CSV: table.ContentTypes[table.CSV], table.NDJSON: table.ContentTypes[table.NDJSON]}

// splitPath splits a path into the address of a query and the format, which may be "".
func splitPath(path string) (address, format string, ok bool) {
	address, format, hasFormat := strings.Cut(path, ".")
	return address, format, !hasFormat || contentTypes[format] != "" || isOfPage(format)
}

// Addressed returns the saved query that a request is for: its handle and name, or its
// hash. It is "" for other requests.
func Addressed(r *http.Request) string {
	address, inSaved := strings.CutPrefix(r.URL.Path, Path)
	if !inSaved {
		return ""
	}
	address, _, _ = splitPath(address)
	return address
}

// Metadata is the end of the path that describes the table of a query.
const Metadata = "metadata.json"

// isOfPage reports whether a format is derived from what the page shows: the chart as an
// image, or the description of the table.
func isOfPage(format string) bool {
	return format == "svg" || format == "small.svg" || format == "png" || format == Metadata
}

// IsDocument reports whether a path belongs to an OpenAPI document.
func IsDocument(path string) bool {
	return strings.HasPrefix(path, Path) && strings.HasSuffix(path, "/"+documentName+".json")
}

// request is a parsed request. It is shared between callers: nothing changes it.
type request struct {
	from      *record
	variables map[string]any
	others    map[string]any
	asOf      graph.AsOf
	format    string
	keyed     bool     // the response is only for callers with a key
	whole     bool     // the response is a whole list
	unknown   []string // a header that names parameters that the query does not have
	vary      string
	cacheKey  cache.Key
	respond   cache.Execute
	err       error // in the parameters
}

// requestSize approximates the memory of a parsed request without its strings.
const requestSize = 1_000

// ServeHTTP serves saved queries and their OpenAPI documents.
func (s *Queries) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.serve(w, r)
	if err == nil || r.Context().Err() != nil {
		return
	}
	w.Header().Set("Vary", varyWith(true))
	w.Header().Del(rest.UnknownParametersHeader)
	if release := s.Cache.Newest(); release > 0 {
		w.Header()[headers.Release] = []string{strconv.Itoa(release)}
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
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed; use GET or HEAD.", params.Truncate(r.Method))
	}
	if req.err != nil {
		return req.err
	}
	if req.unknown != nil {
		w.Header()[rest.UnknownParametersHeader] = req.unknown
	}
	if req.whole {
		return s.serveWhole(w, r, req)
	}
	response, err := s.Cache.Get(r.Context(), req.cacheKey, req.respond)
	if err != nil {
		return err
	}
	return response.Write(w, r)
}

// IsPage reports whether a request for a saved query is for its page, for the Markdown
// version or for what is derived from it. URLs with a language or for embedding are
// those of pages only.
func IsPage(r *http.Request) bool {
	_, format, _ := splitPath(r.URL.Path)
	_, isLocal := lang.Chosen(r.Context())
	_, isEmbedded := CutEmbed(r.URL.Path)
	accept := r.Header["Accept"]
	return isOfPage(format) || format == "" && !r.URL.Query().Has(formatName) &&
		(isLocal || isEmbedded || negotiate.Named(accept, "text/html") > 0 || negotiate.Named(accept, "text/markdown") > 0)
}

// CutEmbed returns the path of a query without the end that selects the form of its page
// for other sites, and whether it has one. A query can have the name embed, too.
func CutEmbed(path string) (address string, found bool) {
	address, found = strings.CutSuffix(path, "/embed")
	rest := strings.TrimPrefix(address, Path)
	if found && (strings.Contains(rest, "/") || hashPattern.MatchString(rest)) {
		return address, true
	}
	return path, false
}

// prepare returns the parsed request if the caller may read the query.
func (s *Queries) prepare(r *http.Request) (*request, error) {
	path, caller := r.URL.Path, auth.CallerFrom(r.Context())
	address, format, ok := splitPath(path)
	switch {
	case !params.IsText(path):
		return nil, problem.New(problem.BadInput, "The path contains a NUL character or invalid UTF-8.")
	case !ok && strings.Contains(format, "/"):
		return nil, errNotFound
	case !ok:
		return nil, problem.New(problem.NotFound, "There is no format %q. Saved queries have json, csv, ndjson and metadata.json, and their charts svg and png.", params.Truncate(format))
	}
	key := cache.Key{Operation: path, Variables: r.URL.RawQuery, Keyed: caller.Key != ""}
	negotiated := ""
	if accept := r.Header["Accept"]; format == "" && len(accept) > 0 && accept[0] != "*/*" {
		switch negotiate.Accepts(accept, mediaJSON, mediaCSV, mediaNDJSON) {
		case mediaCSV:
			negotiated = table.CSV
		case mediaNDJSON:
			negotiated = table.NDJSON
		}
	}
	if negotiated != "" {
		key.Operation += "\n" + negotiated
	}
	accountID := 0
	if hashPattern.MatchString(strings.TrimPrefix(address, Path)) { // several accounts may have saved the same text
		accountID = caller.Account
		key.Operation += "\n" + strconv.Itoa(accountID)
	}
	req, known := s.requests.Get(cache.Timeless, key)
	found, err := s.find(r.Context(), address, accountID)
	if err != nil {
		return nil, err
	}
	if !known || req.from != found {
		req = s.parse(r, found, format, negotiated, key.Keyed)
		s.requests.Put(cache.Timeless, key, req, requestSize+2*len(key.Operation)+2*len(key.Variables))
	}
	return req, found.check(caller, caller.Key == "" && auth.TokenOf(r) != "")
}

// parse reads the parameters of a request.
func (s *Queries) parse(r *http.Request, rec *record, format, negotiated string, keyed bool) *request {
	req := &request{from: rec, vary: varyWith(format == "")}
	if rec.query == nil {
		return req
	}
	if req.variables, req.others, req.err = rec.query.read(r.URL.RawQuery); req.err != nil {
		return req
	}
	req.unknown = rec.query.unknown(r.URL.RawQuery)
	req.asOf, req.err = graph.ReadAsOf(req.others)
	wanted, given := req.others[formatName].(string)
	switch {
	case req.err != nil:
	case given && format != "" && wanted != format:
		req.err = problem.New(problem.BadInput, "format must be %s, like the extension in the URL (got %q).", format, wanted)
	case given:
		format, req.vary = wanted, varyWith(false)
	case format == "":
		format = cmp.Or(negotiated, formatJSON)
	}
	dialect, _ := req.others[dialectName].(string)
	switch {
	case req.err != nil:
	case dialect != "" && format != table.CSV:
		req.err = problem.New(problem.BadInput, "dialect requires CSV (the extension .csv or format=csv).")
	case format == table.CSV:
		req.err = rec.query.checkTable()
	}
	req.format = format
	req.whole = keyed && format != formatJSON && rec.query.list != nil && rec.query.list.whole != nil
	req.keyed = req.whole || !rec.public || rec.query.operation.RequiresKey() || req.asOf.Release > 0 && keyed
	req.cacheKey = cache.Key{
		Operation: rec.address + " " + rec.hash, Keyed: req.keyed,
		Variables: strings.Join([]string{req.vary, format, dialect, req.asOf.String(), params.Canonical(rec.query.parameters, req.variables)}, "\n"),
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
	query := req.from.query
	result := s.Executor.Execute(ctx, graph.Request{Operation: query.operation, Variables: req.variables, AsOf: req.asOf})
	if p := result.Problem(); p != nil {
		return nil, result.Newest, p
	}
	dialect, _ := req.others[dialectName].(string)
	body, err := query.bodyOf(result.Data)
	if err == nil {
		body, err = query.write(body, req.format, dialect, req.variables, s.Executor.Limits().Response)
	}
	if err != nil {
		return nil, 0, err
	}
	return cache.NewEntry(body, s.header(req, result)).AddWeight(query.operation.Weight()), result.Newest, nil
}

// header returns the headers of a successful response, as in the REST API. Shared caches
// must not store whole lists, nor responses of private queries, whose token may be revoked.
func (s *Queries) header(req *request, result *graph.Result) http.Header {
	rec := req.from
	header := headers.Of(result, contentTypes[req.format], req.keyed)
	header["Vary"] = []string{req.vary}
	switch {
	case (req.whole || !rec.public) && result.Release > 0:
		header["Cache-Control"] = []string{"private, no-cache"}
	case rec.account != 0 && result.Release > 0: // briefly, because its owner may change it or make it private
		header["Cache-Control"] = []string{"s-maxage=60, stale-while-revalidate=60"}
	}
	if req.format == table.CSV {
		header["Content-Disposition"] = []string{fmt.Sprintf(`attachment; filename="%s-%d.csv"`, cmp.Or(rec.name, rec.hash), result.Release)}
	}
	if rec.account != 0 {
		header["X-Robots-Tag"] = []string{"noindex"}
	}
	if unknown := rest.UnknownValues(result, req.variables); unknown != nil {
		header[rest.UnknownValuesHeader] = unknown
	}
	headers.AddAsOf(header, req.asOf, result, func(value any) string { return s.urlWith(req, graph.AsOfName, value) })
	s.addPosition(header, req, result)
	headers.AddDeprecation(header, rec.query.operation.Deprecation())
	return header
}

// urlWith returns the URL of a request with another value of a parameter, or without the
// parameter for nil.
func (s *Queries) urlWith(req *request, name string, value any) string {
	rec, values := req.from, maps.Clone(req.variables)
	for _, other := range []string{dialectName, graph.AsOfName} {
		values[other] = req.others[other]
	}
	values[name] = value
	address := s.Service.PublicURL + rec.address + "." + req.format
	parameters := slices.Concat(rec.query.parameters, []params.Param{{Name: dialectName}, graph.AsOfParam})
	if query := params.Canonical(parameters, values); query != "" {
		address += "?" + query
	}
	return address
}

// CacheKey returns the key of what is derived from the result of a request, if the
// caller may read it.
func (s *Queries) CacheKey(r *http.Request) (cache.Key, error) {
	req, err := s.prepare(r)
	if err != nil {
		return cache.Key{}, err
	}
	return req.cacheKey, req.err
}

// View is a saved query with its result, for a page about it.
type View struct {
	Address, Name, Hash, Text string
	Title, Description        string
	Chart                     Chart
	Public                    bool
	BuiltIn                   bool
	Parameters                []params.Param
	Values                    map[string]any // values of the given parameters
	Columns                   []Column       // of the CSV; none if there is none
	Body                      json.RawMessage
	Result                    *graph.Result // nil if a parameter is invalid
	Err                       error         // what is wrong with the parameters
	query                     *query
}

// Grid returns the start of the rows. They are those of the CSV, with the metrics of series
// in rows. If the result has no CSV, lists are cells with JSON.
func (v *View) Grid(ctx context.Context) (*Grid, error) {
	rows := v.query.rows
	return NewGrid(ctx, rows.Columns, func(use func([]jsontext.Value) error) error { return rows.Rows(jsontext.Value(v.Body), use) })
}

// Count returns how many rows the CSV has; that of a list has all of it, as callers with a
// key or token get it. It is -1 if only reading all of the list would tell.
func (v *View) Count() (n int, err error) {
	q := v.query
	if q.list != nil && q.list.whole != nil {
		if q.list.counted && !q.table.IsNested() {
			return v.Result.Total, nil
		}
		return -1, nil
	}
	count := func([]jsontext.Value) error { n++; return nil }
	if q.table.Pivot != nil {
		err = q.table.PivotRows(jsontext.Value(v.Body), q.metrics(v.Values), count)
	} else {
		err = q.table.Rows(jsontext.Value(v.Body), count)
	}
	return n, err
}

// View executes the query that a request for a page selects.
func (s *Queries) View(r *http.Request) (*View, error) {
	req, err := s.prepare(r)
	if err != nil {
		return nil, err
	}
	rec := req.from
	view := &View{
		Address: rec.address, Name: rec.name, Hash: rec.hash, Text: rec.text, Title: rec.title, Description: rec.description, Chart: rec.chart,
		Public: rec.public, BuiltIn: rec.account == 0, Parameters: rec.query.parameters, Values: req.variables, Columns: rec.query.columns(req.variables), Err: req.err, query: rec.query,
	}
	if req.err != nil {
		return view, nil
	}
	return view, s.execute(r.Context(), view, req.asOf)
}

// execute adds the result to a view, or what is wrong with the parameters.
func (s *Queries) execute(ctx context.Context, view *View, asOf graph.AsOf) (err error) {
	result := s.Executor.Execute(ctx, graph.Request{Operation: view.query.operation, Variables: view.Values, AsOf: asOf})
	if p := result.Problem(); p != nil {
		if p.Code.Status() < http.StatusInternalServerError {
			view.Err = p
			return nil
		}
		return p
	}
	view.Result = result
	view.Body, err = view.query.bodyOf(result.Data)
	return err
}
