package status

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/web/page"
)

// Path is where the page is.
const Path = "/status"

// Config is what the page needs of the rest of the program.
type Config struct {
	PublicURL, ServiceName, Credit string
	Store                          *store.Store
	Log                            *slog.Logger
	// Healthy reports whether the database is available at the moment; nil if
	// only reading from it can show that.
	Healthy func() bool
}

// Page shows how the last days went.
type Page struct {
	Config
	now func() time.Time

	reads singleflight.Group // one at a time is enough
	known atomic.Pointer[shown]
}

// shown is the data of the page.
type shown struct {
	Days   []bar
	Whole  Day
	Today  Day
	Target float64
	Width  int
	Since  time.Time // the first day that is known
	Read   time.Time
	tried  time.Time // to read it again
	failed bool
	// Unavailable is shown beside what was read before.
	Unavailable bool
}

type bar struct {
	Day
	X, Y, High float64
	Kind       string // how it went, for the style
}

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Assets are the page's style.
var Assets = page.MustAssets(assetFiles, "assets")

var templates = page.MustTemplates(templateFiles, "templates", template.FuncMap{
	"date":   func(t time.Time) string { return t.Format(time.DateOnly) },
	"minute": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
})

// NewPage makes the page.
func NewPage(cfg Config) *Page { return &Page{Config: cfg, now: time.Now} }

const (
	// target is what Pro customers are promised.
	target = 99.0
	// freshFor is how long what was read is shown again.
	freshFor = 30 * time.Second
	// readTime is how long a visitor waits for the database.
	readTime = 3 * time.Second

	barStep = 10
	barWide = 7
	barHigh = 80.0
)

// ServeHTTP shows the page. While the database is unavailable, it says so and
// shows what was read before.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Guard(w.Header(), page.Plain+"; form-action 'self'", strings.HasPrefix(p.PublicURL, "https://"))
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		p.fail(w, r, problem.New(problem.WrongMethod, "It does nothing with %s.", r.Method), "This page is for reading")
		return
	}
	data, err := p.read(r.Context())
	if err != nil {
		p.Log.ErrorContext(r.Context(), "reading the days failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		w.Header().Set("Retry-After", "60")
		p.fail(w, r, problem.New(problem.Unavailable, "Our database is unavailable at the moment. Try again in a minute."), "The status is not known")
		return
	}
	caching := "public, max-age=30"
	if data.Unavailable {
		caching = "no-store"
	}
	body, err := templates.Render("status", p.content(data))
	if err == nil {
		err = cache.NewEntry(body, http.Header{
			"Content-Type":  {"text/html; charset=utf-8"},
			"Cache-Control": {caching},
			"Vary":          {"Accept-Encoding"},
		}).Write(w, r)
	}
	if err != nil {
		p.Log.ErrorContext(r.Context(), "the page of days is wrong", "cause", err, "request_id", problem.RequestID(r.Context()))
		problem.Write(w, err)
	}
}

// content is what the layout shows around the page.
func (p *Page) content(data any) page.Content {
	return page.Content{Service: p.ServiceName, Credit: p.Credit, Here: Path, Data: data, Head: page.Head{Styles: []string{Assets.Path("status.css")}}}
}

// trouble is the data of the page of a problem.
type trouble struct{ Title, Text, RequestID string }

// fail answers with the page of a problem: it is people who look here.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, said *problem.Problem, title string) {
	w.Header().Set("Cache-Control", "no-store")
	data := trouble{title, said.Message, problem.RequestID(r.Context())}
	if err := templates.Write(w, said.Code.Status(), "trouble", p.content(data)); err != nil {
		p.Log.ErrorContext(r.Context(), "the page of a problem is wrong", "cause", err, "request_id", data.RequestID)
		problem.Write(w, said)
	}
}

// read returns what to show: what was read a short while ago, or what is read
// now, once for all visitors. No visitor waits longer than readTime, since a
// query to a frozen database ignores its deadline: they see what was read before.
func (p *Page) read(ctx context.Context) (*shown, error) {
	known := p.known.Load()
	if known != nil {
		if age := p.now().Sub(known.tried); age >= 0 && age < freshFor {
			return p.with(known), nil
		}
	}
	reading := p.reads.DoChan("", func() (any, error) { return p.refresh(known) })
	if known != nil && p.Healthy != nil && !p.Healthy() {
		return p.with(known), nil // waiting would be in vain
	}
	patience := time.NewTimer(readTime)
	defer patience.Stop()
	err := context.DeadlineExceeded
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-patience.C:
	case result := <-reading:
		if result.Err == nil {
			return p.with(result.Val.(*shown)), nil
		}
		err = result.Err
	}
	if known == nil {
		return nil, err
	}
	late := *known
	late.failed = true
	return p.with(&late), nil
}

// with adds whether the database is available by now.
func (p *Page) with(known *shown) *shown {
	now := *known
	now.Unavailable = known.failed
	if p.Healthy != nil {
		now.Unavailable = !p.Healthy()
	}
	return &now
}

// refresh reads the days. Where that fails, what was known remains, and the
// next attempt is due when that is no longer fresh.
func (p *Page) refresh(known *shown) (_ *shown, err error) {
	defer func() {
		if caught := recover(); caught != nil { // it would end the process: no visitor can recover it
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	now := p.now()
	all, whole, err := days(ctx, p.Store, now)
	if err != nil {
		if known == nil {
			return nil, err
		}
		p.Log.Warn("reading the days failed", "cause", err)
		again := *known
		again.tried, again.failed = p.now(), true
		p.known.Store(&again)
		return &again, nil
	}
	fresh := draw(all, whole)
	fresh.Read, fresh.tried = now, now
	p.known.Store(fresh)
	return fresh, nil
}

func draw(all []Day, whole Day) *shown {
	s := &shown{Whole: whole, Today: all[len(all)-1], Target: target, Width: len(all) * barStep}
	for i, day := range all {
		if day.Known() && s.Since.IsZero() {
			s.Since = day.Date
		}
		b := bar{Day: day, X: float64(i * barStep), High: barHigh, Kind: "unknown"}
		if day.Known() {
			b.Kind = kindOf(day)
			b.High = max(4, day.Share()*barHigh)
		}
		b.Y = barHigh - b.High
		s.Days = append(s.Days, b)
	}
	return s
}

func kindOf(day Day) string {
	switch {
	case day.Good == day.Minutes:
		return "good"
	case day.Share()*100 >= target:
		return "fair"
	}
	return "bad"
}
