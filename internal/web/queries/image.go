package queries

import (
	"context"
	"net/http"
	"path"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
)

// serveImage serves the chart of a query as a file.
func (p *Pages) serveImage(w http.ResponseWriter, r *http.Request) error {
	_, extension, _ := strings.Cut(path.Base(r.URL.Path), ".")
	chosen, _ := lang.Chosen(r.Context()) // without one it is English, for programs too
	l := lang.Parse(string(chosen))
	return p.serveDerived(w, r, "image "+string(l), func(ctx context.Context, view *saved.View, caching string) (*cache.Entry, error) {
		grid, err := view.Grid(ctx)
		if err != nil {
			return nil, err
		}
		t := &table{Grid: grid}
		drawn := newChart(l, t, view.Chart, readCatalog(ctx, l, view, p.Queries.Executor))
		if drawn == nil {
			return nil, problem.New(problem.NotFound, "The result of this query cannot be drawn as a chart. Its page shows it as a table.")
		}
		return drawn.Entry(ctx, l, extension, p.Credit, caching)
	})
}

// serveDerived serves what is derived from the result of a query. It is made once for each
// release, and making it is charged to the visitor like a page.
func (p *Pages) serveDerived(w http.ResponseWriter, r *http.Request, kind string, derive func(ctx context.Context, view *saved.View, caching string) (*cache.Entry, error)) error {
	key, err := p.Queries.CacheKey(r)
	if err != nil {
		return err
	}
	small := &http.Request{Method: r.Method, URL: r.URL, Header: r.Header} // the cache retains it
	key.Operation = kind + " " + key.Operation
	response, err := p.Queries.Cache.Get(p.Visitors.Identify(r), key, func(ctx context.Context) (*cache.Entry, int, error) {
		done, err := p.Visitors.Start(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer done()
		view, err := p.Queries.View(small.WithContext(ctx))
		if err == nil {
			err = view.Err
		}
		if err != nil {
			return nil, 0, err
		}
		caching := publicCaching
		switch {
		case !view.Public:
			caching = "private, no-cache"
		case view.BuiltIn:
			caching = page.Caching
		}
		entry, err := derive(ctx, view, caching)
		return entry, view.Result.Newest, err
	})
	if err != nil {
		return err
	}
	return response.Write(w, r)
}
