// Package queries serves the pages of saved queries: one for each, with its
// parameters, result and chart, and the gallery of public ones. They work without
// JavaScript.
package queries

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"palmares/graph"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
	"palmares/internal/web/visitor"
	"palmares/internal/web/words"
)

// GalleryPath is the path of the gallery.
const GalleryPath = "/q"

//go:embed templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", func(lang.Language) template.FuncMap { return template.FuncMap{"text": params.Format} })

// Pages serves the pages.
type Pages struct {
	page.Service
	Queries  *saved.Queries
	Visitors *visitor.Limiter
}

// queryPage is the data of the page of a query, and of its form for other sites.
type queryPage struct {
	*saved.View
	Owner    string // handle, or "" at the URL of a version
	Fields   []field
	Table    *table
	Chart    *chart.Chart
	Drawing  template.HTML // of the chart
	Programs *programs     // nil without a CSV
	Explorer string
	Share    string // URL of the page, or "" if it is private
	Snippet  string // HTML that embeds the chart
	Problem  string // what is wrong with the parameters
	Wrong    string // name of the parameter that is wrong, or ""
	Since    string // the day that the result starts with, if a parameter chooses it
	query    string // of the URL
}

// File returns the path of the result in another format.
func (d *queryPage) File(extension string) string {
	return page.WithQuery(d.Address+"."+extension, d.query)
}

// field is a parameter in the form.
type field struct {
	params.Param
	Type, Value, Preset string
	Label               string // words for Name
	IsRelative          bool   // a date that may be relative to that of the edition
}

const tableHeight = 480 // of a frame with a table, which scrolls

// ServeHTTP serves the page of a saved query to browsers, its data to others, and the
// gallery.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	isGallery := r.URL.Path == GalleryPath || r.URL.Path == page.MarkdownPath(GalleryPath)
	switch {
	case isGallery:
	case reads && strings.HasSuffix(r.URL.Path, "."+saved.Metadata):
		if err := p.serveMetadata(w, r); err != nil {
			problem.Write(w, err)
		}
		return
	case !reads || !saved.IsPage(r) || saved.IsDocument(r.URL.Path):
		p.Queries.ServeHTTP(w, r)
		return
	}
	p.SetSecurityHeaders(w.Header(), page.FormPolicy)
	handle := func(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := serve(w, r); err != nil {
				p.fail(w, r, err)
			}
		})
	}
	_, extension, _ := strings.Cut(path.Base(r.URL.Path), ".")
	switch target := withoutEmpty(r.URL); {
	case isGallery:
		p.Visitors.Limit(handle(p.serveGallery), p.fail).ServeHTTP(w, r)
	case target != "":
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, localPath(r, target), http.StatusSeeOther)
	case chart.ContentTypes[extension] != "" || extension == chart.Small:
		handle(p.serveImage).ServeHTTP(w, r) // on the visitor's budget only if it is not cached
	default:
		p.Visitors.Limit(handle(p.serveQuery), p.fail).ServeHTTP(w, r)
	}
}

// serveQuery serves the page at the URL of a saved query, or its form for other sites.
func (p *Pages) serveQuery(w http.ResponseWriter, r *http.Request) error {
	name := "query"
	if address, found := saved.CutEmbed(r.URL.Path); found {
		name = "embed"
		r = r.Clone(r.Context())
		r.URL.Path = address
	}
	data, err := p.load(r)
	if err != nil {
		return err
	}
	return p.render(w, r, name, data)
}

// render renders a query with its result, or with what is wrong.
func (p *Pages) render(w http.ResponseWriter, r *http.Request, name string, data *queryPage) error {
	l, header, status := languageOf(r), w.Header(), http.StatusOK
	if name == "embed" {
		p.SetSecurityHeaders(header, embedPolicy)
		header.Del("X-Frame-Options")
		header.Set("Cross-Origin-Resource-Policy", "cross-origin") // for sites that require it of what they embed
	}
	if data.Err != nil {
		reason := problem.Of(data.Err)
		status, data.Problem, data.Wrong = reason.Code.Status(), reason.In(l), reason.Param
	}
	caching := "private, no-cache"
	if data.Public && r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" && !r.URL.Query().Has("token") {
		caching = publicCaching
	}
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Vary", "Authorization, Accept-Encoding, Accept, Accept-Language")
	content := p.Content(l, data.Address, page.Head{}, data)
	content.Query = withoutToken(r.URL)
	content.NoIndex = !data.BuiltIn || content.Query != ""
	if content.NoIndex || name == "embed" {
		header.Set("X-Robots-Tag", "noindex")
	}
	return p.send(w, r, status, name, content, caching)
}

// publicCaching is brief, because the owner of a query may change it or make it private.
const publicCaching = "public, max-age=0, s-maxage=60"

// embedPolicy is the Content-Security-Policy of the form for other sites, which has
// neither scripts nor forms.
const embedPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors *"

// load executes the query of a request.
func (p *Pages) load(r *http.Request) (*queryPage, error) {
	view, err := p.Queries.View(r)
	if err != nil {
		return nil, err
	}
	l := languageOf(r)
	if view.BuiltIn {
		view.Title, view.Description = p.titleOf(r.Context(), l, view.Title, view.Text, view.Values), l.Text(lang.Message(view.Description))
	}
	data := &queryPage{View: view, Explorer: explorerURL(view), query: r.URL.RawQuery}
	data.Title = cmp.Or(view.Title, l.Text("Saved query"))
	if handle, _, named := strings.Cut(strings.TrimPrefix(view.Address, saved.Path), "/"); named {
		data.Owner = handle
	}
	for _, parameter := range view.Parameters {
		f := fieldOf(parameter, r.URL.Query())
		if f.Label = words.Input(l, f.Name); f.Name == "from" && parameter.Kind == "Date" {
			f.Label = words.Input(l, "since")
		}
		data.Fields = append(data.Fields, f)
	}
	given := r.URL.Query()
	given.Del("token")
	data.Programs = programsOf(p.PublicURL, view, given)
	if view.Public {
		data.Share = p.PublicURL + localPath(r, page.WithQuery(view.Address, withoutToken(r.URL)))
	}
	if view.Err != nil {
		return data, nil
	}
	if err := data.draw(r.Context(), l, p.Queries.Executor); err != nil {
		return nil, err
	}
	height, style := tableHeight, fmt.Sprint(tableHeight, "px")
	if data.Chart != nil {
		caption := chart.Title(data.Chart.Title, l.Text("Edition %d", view.Result.Release)+", "+l.DayOf(view.Result.UpdatedAt))
		if data.Since != "" {
			caption = chart.Title(caption, l.Text("From")+" "+l.DayOf(data.Since))
		}
		height, style = data.Chart.FrameHeight(data.Title, caption, p.Credit) // longer than the credit of the frame
	}
	if view.Public {
		embed := p.PublicURL + localPath(r, page.WithQuery(view.Address+"/embed", withoutToken(r.URL)))
		data.Snippet = fmt.Sprintf(`<div style="container-type:inline-size"><iframe src="%s" title="%s" width="100%%" height="%d" loading="lazy" style="border:0;height:%s"></iframe></div>`, html.EscapeString(embed), html.EscapeString(data.Title), height, style)
	}
	return data, nil
}

var comparedTool = regexp.MustCompile(`\$tool: String! = "([^"]+)"`)

// titleOf returns the title of one of our queries. That of a tool's comparisons names the tool.
func (p *Pages) titleOf(ctx context.Context, l lang.Language, title, text string, values map[string]any) string {
	if found := comparedTool.FindStringSubmatch(text); found != nil && title == "Tools compared with a given tool" {
		slug, given := values["tool"].(string)
		if !given {
			slug = found[1]
		}
		if shown, err := p.Queries.Executor.Release(ctx, graph.AsOf{}); err == nil {
			if t := shown.Tool(slug); t != nil {
				return l.Text("Tools compared with %s", lang.Typeset(t.Name))
			}
		}
	}
	return l.Text(lang.Message(title))
}

// draw adds what a page shows of the result.
func (d *queryPage) draw(ctx context.Context, l lang.Language, executor *graph.Executor) error {
	for _, parameter := range d.Parameters {
		since, given := d.Values[parameter.Name].(string)
		if preset, ok := parameter.Default.(string); ok && !given {
			since = preset
		}
		if parameter.Kind == "Date" && (parameter.Name == "from" || parameter.Name == "since") && since != "" && since != "previous" {
			if d.Since = since; params.IsRelativeDate(since) {
				d.Since = params.ResolveDate(since, d.Result.UpdatedAt, "")
			}
		}
	}
	grid, err := d.Grid(ctx)
	if err != nil {
		return err
	}
	d.Table = &table{Grid: grid}
	names := readCatalog(ctx, l, d.View, executor)
	if d.Chart = newChart(l, d.Table, d.View.Chart, names); d.Chart != nil {
		if d.Drawing, err = d.Chart.Draw(ctx); err != nil {
			return err
		}
	}
	d.Table.addWords(l, names) // after the chart, which reads codes
	return nil
}

// Preview returns what the page of a query would show of its result.
func Preview(ctx context.Context, l lang.Language, from *saved.Queries, view *saved.View) (template.HTML, error) {
	data := &queryPage{View: view}
	if err := data.draw(ctx, l, from.Executor); err != nil {
		return "", err
	}
	body, err := templates.Render("preview", page.Content{Language: l, Data: data})
	return template.HTML(body), err //nolint:gosec // rendered by a template
}

// languageOf returns the language of a page. URLs of saved queries may have no
// prefix, because programs use them too; then the browser's preference decides.
func languageOf(r *http.Request) lang.Language {
	if l, chosen := lang.Chosen(r.Context()); chosen || !strings.HasPrefix(r.URL.Path, saved.Path) {
		return lang.Parse(string(l))
	}
	return lang.Preferred(r.Header.Get("Accept-Language"))
}

// localPath adds the language to a path if the request's URL has one.
func localPath(r *http.Request, target string) string {
	if l, chosen := lang.Chosen(r.Context()); chosen {
		return page.LocalPath(l, target)
	}
	return target
}

// withoutToken returns the query of a URL without a token, which is only for those who
// were given it.
func withoutToken(u *url.URL) string {
	query := u.Query()
	query.Del("token")
	return query.Encode()
}

// send sends a page, or its Markdown version.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, status int, name string, content page.Content, caching string) error {
	if err := r.Context().Err(); err != nil {
		return err
	}
	content.AsMarkdown = page.WantsMarkdown(r)
	if status != http.StatusOK {
		return templates.Write(w, status, name, content)
	}
	entry, err := templates.Entry(name, content, caching)
	if err != nil {
		return err
	}
	return entry.With("Vary", w.Header()["Vary"]).Write(w, r)
}

// withoutEmpty returns the URL without the empty fields of a form, or "" if it
// has none.
func withoutEmpty(u *url.URL) string {
	query := u.Query()
	empty := false
	for name, values := range query {
		if len(values) == 1 && values[0] == "" {
			query.Del(name)
			empty = true
		}
	}
	if !empty {
		return ""
	}
	return page.WithQuery(u.EscapedPath(), query.Encode())
}

// fieldOf returns the input for a parameter.
func fieldOf(p params.Param, given url.Values) field {
	f := field{Param: p, Type: "text", Value: given.Get(p.Name)}
	switch p.Kind {
	case "Int":
		f.Type = "number"
	case "Date":
		f.Type = "date"
	}
	if p.Default != nil {
		f.Preset = params.Format(p.Default)
	}
	if p.Repeats {
		f.Value = strings.Join(given[p.Name], " ")
	}
	switch {
	case f.Type == "date" && (params.IsRelativeDate(f.Value) || f.Value == "" && params.IsRelativeDate(f.Preset)):
		f.Type, f.IsRelative = "text", true
	case f.Type == "date" && f.Value == "":
		f.Value = f.Preset // browsers show no placeholder in a date field
	}
	return f
}

// explorerURL opens a query with its variables.
func explorerURL(view *saved.View) string {
	var variables []byte
	if len(view.Values) > 0 {
		variables, _ = json.Marshal(view.Values, json.Deterministic(true)) // "" if they cannot be encoded
	}
	return page.ExplorerURL(view.Text, string(variables))
}

// galleryPage is the data of the gallery.
type galleryPage struct {
	Search         string
	Queries        []galleryItem
	Previous, Next int // pages, or 0
}

type galleryItem struct {
	Address, Title, Owner, Description string
	Image                              string // path of the chart, or ""
}

const (
	galleryLength = 50
	// galleryImages is how many charts a page shows: a visitor may request no more at once.
	galleryImages = 15
)

// serveGallery serves a page of the public queries.
func (p *Pages) serveGallery(w http.ResponseWriter, r *http.Request) error {
	if err := page.CheckMethod(w, r); err != nil {
		return err
	}
	query, err := params.ReadForm(r.URL.RawQuery, []params.Param{
		{Name: "search", Kind: "String", Max: 100}, {Name: "page", Kind: "Int", Min: 1, Max: 1_000},
	})
	if err != nil {
		return err
	}
	number := 1
	if given, ok := query["page"].(int64); ok {
		number = int(given)
	}
	l, data := languageOf(r), galleryPage{}
	data.Search, _ = query["search"].(string)
	data.Search = strings.TrimSpace(data.Search)
	if number == 1 {
		for _, b := range p.Queries.BuiltIn {
			item := galleryItem{saved.Path + saved.Handle + "/" + b.Name, p.titleOf(r.Context(), l, b.Title, b.Text, nil), "", l.Text(lang.Message(b.Description)), ""}
			if text := strings.Join([]string{b.Name, item.Title, item.Description, saved.Handle}, " "); strings.Contains(strings.ToLower(text), strings.ToLower(data.Search)) {
				data.Queries = append(data.Queries, item)
			}
		}
	}
	found, more, err := p.Queries.Public(r.Context(), data.Search, galleryLength, (number-1)*galleryLength)
	if err != nil {
		return page.ErrNoDatabase(err)
	}
	for _, q := range found {
		address := strings.TrimPrefix(q.Named, p.PublicURL)
		owner, _, _ := strings.Cut(strings.TrimPrefix(address, saved.Path), "/")
		data.Queries = append(data.Queries, galleryItem{address, q.Title, owner, q.Description, ""})
	}
	for i := range data.Queries[:min(len(data.Queries), galleryImages)] {
		data.Queries[i].Image = page.LocalPath(l, data.Queries[i].Address+"."+chart.Small)
	}
	if data.Previous = number - 1; more {
		data.Next = number + 1
	}
	w.Header().Set("Vary", page.Vary)
	content := p.Content(l, GalleryPath, page.Head{}, data)
	content.Markdown = page.WithQuery(page.MarkdownPath(GalleryPath), r.URL.RawQuery)
	return p.send(w, r, http.StatusOK, "gallery", content, "public, max-age=30")
}

// fail writes an error page. The form for other sites shows the error itself, unless the
// server failed.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	address, isEmbed := saved.CutEmbed(r.URL.Path)
	if isEmbed && problem.Of(err).Code.Status() < http.StatusInternalServerError && p.render(w, r, "embed", &queryPage{View: &saved.View{Address: address, Err: err}}) == nil {
		return
	}
	l := languageOf(r)
	data := page.ErrorPage{More: page.Suggestion{Path: GalleryPath, Name: l.Text("View public queries")}}
	switch problem.Of(err).Code {
	case problem.NotFound:
		data.Title = l.Text("Query not found")
	case problem.Gone:
		data.Title = l.Text("This query is no longer valid")
	}
	p.Fail(w, r, err, p.Content(l, r.URL.Path, page.Head{}, nil), data)
}
