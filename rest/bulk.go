package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/cache"
	"palmares/internal/core/limiter"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/table"
	"palmares/internal/transport/headers"
)

const (
	formatName, dialectName = "format", "dialect"

	// bulkPage is the number of items that are read at a time.
	bulkPage = 200
	// defaultSendTime is how long a client may take to receive a chunk.
	defaultSendTime = 30 * time.Second
	// maxDownloads limits the memory of downloads that are read slowly: up to 4 MB each.
	maxDownloads = 100
	// downloadRetry is how long to wait after too many downloads, in seconds.
	downloadRetry = "5"
)

// formats are the formats of downloads.
var formats = []string{table.CSV, table.NDJSON}

// bulkParameters are the parameters of downloads. The path of the JSON list accepts
// them too: format was the only way to a download before these had their own paths.
var bulkParameters = []Parameter{
	{Param: params.Param{Name: formatName, Kind: "String", Values: formats}, hidden: true},
	{Param: params.Param{Name: dialectName, Kind: "String", Values: table.Dialects}, csvOnly: true,
		Description: DialectsText},
}

// DialectsText describes the dialects of CSV.
const DialectsText = "`excel` is for spreadsheets in English, with commas and decimal points, `excel-fr` for " +
	"spreadsheets in French, with semicolons and decimal commas. Both start with a byte order mark, so that Excel " +
	"reads UTF-8."

// prices are the columns of CSV with the parts of a price, so that spreadsheets can
// compute with it.
var prices = &table.Derived{
	From: "price", Columns: []string{"price_amount", "price_currency", "billing_period"},
	Values: func(text string) []jsontext.Value {
		amount, period, ok := pricing.Parse(text)
		if !ok {
			return nil
		}
		return []jsontext.Value{
			strconv.AppendFloat(nil, amount, 'f', -1, 64), jsontext.Value(`"EUR"`),
			jsontext.Value(`"` + pricing.Period(period) + `"`),
		}
	},
}

// addDownloads returns the endpoints for the whole list in other formats, and adds
// them to the endpoint of the JSON list.
func (e *endpoint) addDownloads() (downloads []*endpoint) {
	e.downloads = map[string]*endpoint{}
	for _, format := range formats {
		d := *e
		d.format, d.path, d.requiresKey = format, e.path+"."+format, true
		d.segments = strings.Split(d.path, "/")
		d.id = "download" + strings.TrimPrefix(e.id, "list") + "As" + strings.ToUpper(format[:1]) + format[1:]
		d.summary = e.summary + ", as " + strings.ToUpper(format)
		d.details = "The whole list in one response, as a table (RFC 4180) with a header row and a row for each item."
		if format == table.NDJSON {
			d.details = "The whole list in one response, with one JSON object per line."
		}
		d.details += " Counts as one request. At most 2 downloads may run at the same time."
		d.parameters = nil
		for _, p := range e.parameters {
			p.hidden = p.hidden || p.NoDefaultWith == formatName // a download has no pages
			d.parameters = append(d.parameters, p)
		}
		for _, p := range bulkParameters {
			p.hidden = p.hidden || p.csvOnly && format != table.CSV
			if p.Name == formatName { // redundant, but it must not contradict the path
				p.Values, p.Default = []string{format}, format
			}
			d.parameters = append(d.parameters, p)
		}
		e.downloads[format] = &d
		downloads = append(downloads, &d)
	}
	for _, p := range bulkParameters {
		p.hidden = true
		e.parameters = append(e.parameters, p)
	}
	return downloads
}

// checkFormat checks the given parameters, before defaults.
func (e *endpoint) checkFormat(given map[string]any) error {
	format, _ := given[formatName].(string)
	format = cmp.Or(format, e.format)
	for _, name := range []string{"page", "limit"} {
		if _, both := given[name]; both && format != "" {
			return problem.New(problem.BadInput, "%s is not available for downloads, which return the whole list.", name)
		}
	}
	if _, dialect := given[dialectName]; dialect && format != table.CSV {
		return problem.New(problem.BadInput, "dialect requires CSV (the extension .csv or format=csv).")
	}
	return nil
}

// IsDownload reports whether a request is for a whole list, by its parameter or by the
// extension of its path.
func IsDownload(r *http.Request) bool {
	path := r.URL.Path
	list := strings.TrimSuffix(strings.TrimSuffix(path, "."+table.CSV), "."+table.NDJSON)
	isList := slices.ContainsFunc(routes, func(r route) bool { return r.bulk && r.path == list })
	return isList && (list != path || r.URL.Query().Has(formatName))
}

// isBulk reports whether a request is for a whole list.
func (r *request) isBulk() bool { return r.variables[formatName] != nil }

// serveBulk streams a whole list from one release.
func (h *Handler) serveBulk(w http.ResponseWriter, r *http.Request, req *request) error {
	ctx, caller := r.Context(), auth.CallerFrom(r.Context())
	if caller.Plan.Terms().Downloads == 0 {
		return problem.New(problem.Unauthenticated, "Downloads require an API key. Create one at "+
			"%s/account.", h.cfg.PublicURL)
	}
	response, err := h.cache.Get(ctx, req.cacheKey, req.respond)
	if err != nil {
		return err
	}
	described := response.Value.(*listed)
	return h.Downloads.Send(w, r, response, func(out io.Writer) error { return h.writeList(ctx, req, described, out) })
}

// Downloads sends whole lists to accounts, a few at a time. The zero value is ready to use.
type Downloads struct {
	slots    limiter.Slots[int] // by account
	sendTime time.Duration      // for each chunk; the default if zero
}

// Send streams what a function writes with the headers of a response, if the caller has
// not too many downloads already. It sends a 304 without calling the function.
func (d *Downloads) Send(w http.ResponseWriter, r *http.Request, response cache.Response, write func(io.Writer) error) error {
	caller := auth.CallerFrom(r.Context())
	limit := caller.Plan.Terms().Downloads
	end := func() {}
	defer func() { end() }() // after the last chunk
	return response.Stream(w, r, cmp.Or(d.sendTime, defaultSendTime), func(out io.Writer) error {
		if cache.CachedOnly(r.Context()) {
			return problem.New(problem.NotFound, "The response is not cached.")
		}
		reserved, err := d.slots.Reserve(caller.Account, limit, maxDownloads)
		switch {
		case errors.Is(err, limiter.ErrTotalLimit):
			w.Header().Set("Retry-After", downloadRetry)
			return problem.New(problem.TooMany, "Too many downloads are running on the server. Try again in a few seconds.")
		case err != nil:
			w.Header().Set("Retry-After", downloadRetry)
			w.Header().Add("RateLimit", `"downloads";r=0;t=`+downloadRetry)
			w.Header().Add("RateLimit-Policy", `"downloads";q=`+strconv.Itoa(limit)+`;qu="concurrent-requests"`)
			return problem.New(problem.TooMany, "Too many downloads: at most %d may run at the same time. Try again when "+
				"one has finished.", limit)
		}
		end = reserved
		return write(out)
	})
}

// listed is the list that a download sends.
type listed struct {
	release, total int
	source         []byte
}

// describeList returns the headers of a whole list. The body of its entry is not sent: it
// makes the ETag depend on the release and the version of the program.
func (h *Handler) describeList(ctx context.Context, req *request) (*cache.Entry, int, error) {
	result := h.executor.Execute(ctx, req.part(1, 1, req.asOf, nil))
	if p := result.Problem(); p != nil {
		return nil, 0, p
	}
	total, err := 0, error(nil)
	if req.paginated {
		total = result.Total
	} else if total, err = eachItem(result.Body(), func(jsontext.Value) error { return nil }); err != nil {
		return nil, 0, err
	}
	format := req.variables[formatName].(string)
	header := headers.Of(result, table.ContentTypes[format], true)
	header["Vary"] = []string{vary}
	header["X-Total-Count"] = []string{strconv.Itoa(total)}
	if format == table.CSV {
		header["Content-Disposition"] = []string{fmt.Sprintf(`attachment; filename="%s-%d.csv"`, req.tag(), result.Release)}
	}
	h.addCommon(header, req, result)
	entry := cache.NewEntry(SourceOf(result, h.cfg.Version), header)
	entry.Value = &listed{result.Release, total, entry.Body()}
	return entry, result.Newest, nil
}

// SourceOf identifies what the items of a list are from. A restored backup may have
// another release with the same number.
func SourceOf(result *graph.Result, version string) []byte {
	return fmt.Appendf(nil, "release %d of %s, version %s", result.Release,
		result.PublishedAt.UTC().Format(time.RFC3339Nano), version)
}

// part returns the execution that reads a page of a list, or all of a list
// without pages.
func (r *request) part(page, limit int, asOf graph.AsOf, scan *graph.Scan) graph.Request {
	arguments := maps.Clone(r.arguments)
	if r.paginated {
		arguments["page"], arguments["limit"] = int64(page), int64(limit)
	}
	return graph.Request{Operation: r.operation, Variables: arguments, AsOf: asOf, Scan: scan}
}

// ErrReplaced means that a list has parts from different catalogs.
var ErrReplaced = problem.New(problem.Unavailable, "The catalog was replaced by another one. Try again.")

// writeList writes all items of a list, page by page. They must have the source that
// the headers describe.
func (h *Handler) writeList(ctx context.Context, req *request, list *listed, to io.Writer) error {
	dialect, _ := req.variables[dialectName].(string)
	write, err := table.NewItemWriter(to, req.variables[formatName].(string), dialect, req.columns, prices)
	if err != nil {
		return err
	}
	scan := &graph.Scan{}
	for page, written := 1, 0; written < list.total; page++ {
		result := h.executor.Execute(ctx, req.part(page, bulkPage, graph.AsOf{Release: list.release}, scan))
		if p := result.Problem(); p != nil {
			return p
		}
		if !bytes.Equal(SourceOf(result, h.cfg.Version), list.source) {
			return ErrReplaced
		}
		n, err := eachItem(result.Body(), write)
		if err != nil {
			return err
		}
		if written += n; n == 0 {
			return fmt.Errorf("got %d items of %s, want %d", written, req.path, list.total)
		}
	}
	return nil
}

// eachItem calls a function with each item of a list, as the executor wrote it,
// and returns their number.
func eachItem(body []byte, use func(jsontext.Value) error) (n int, err error) {
	in := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true)) // there are none
	for range len([...]string{"{", `"data":`}) {
		if _, err := in.ReadToken(); err != nil {
			return 0, err
		}
	}
	return table.EachItem(in, use)
}

// fieldNames returns the names of the selected fields within a type, with dots between
// the names of nested objects.
func fieldNames(set ast.SelectionSet, typeName string) (names []string) {
	for _, f := range document.Fields(set, graph.Schema().Types[typeName]) {
		if len(f.SelectionSet) == 0 {
			names = append(names, f.Alias)
		}
		for _, name := range fieldNames(f.SelectionSet, f.Definition.Type.NamedType) {
			names = append(names, f.Alias+"."+name)
		}
	}
	return names
}

// columnsOf returns the names of the columns of a list, whose field is named data.
func columnsOf(set ast.SelectionSet) (names []string) {
	for _, selection := range set {
		f, ok := selection.(*ast.Field)
		if ok && f.Alias == "body" {
			return columnsOf(f.SelectionSet)
		}
		if ok && f.Alias == "data" {
			names = fieldNames(f.SelectionSet, f.Definition.Type.Name())
		}
	}
	if slices.Contains(names, prices.From) {
		names = append(names, prices.Columns...)
	}
	return names
}
