package availability

import (
	"context"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/cache"
	"palmares/internal/page"
	"palmares/internal/problem"
	"palmares/internal/store"
)

// Path is where the page is.
const Path = "/status"

// Config is what the page needs of the rest of the program.
type Config struct {
	PublicURL, ServiceName, Credit string
	Store                          *store.Store
	Log                            *slog.Logger
}

// Page shows how the last days went.
type Page struct {
	Config
	now func() time.Time

	reading sync.Mutex // one is enough
	known   atomic.Pointer[shown]
}

// shown is the data of the page.
type shown struct {
	Days   []bar
	Whole  Day
	Today  Day
	Target float64
	Width  int
	Since  time.Time // the first day that is known
	at     time.Time // when it was read, or last tried
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
	"date": func(t time.Time) string { return t.Format(time.DateOnly) },
})

// NewPage makes the page.
func NewPage(cfg Config) *Page { return &Page{Config: cfg, now: time.Now} }

const (
	// target is what Pro customers are promised.
	target = 99.0
	// freshFor is how long what was read is shown again.
	freshFor = 30 * time.Second

	barStep = 10
	barWide = 7
	barHigh = 80.0
)

// ServeHTTP shows the page. While the database is away, it is the one from
// before.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Guard(w.Header(), page.Plain+"; form-action 'self'", strings.HasPrefix(p.PublicURL, "https://"))
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		p.fail(w, r, problem.New(problem.WrongMethod, "It does nothing with %s.", r.Method), "This page is for reading")
		return
	}
	data, err := p.read(r.Context())
	if err != nil {
		p.Log.ErrorContext(r.Context(), "the days cannot be read", "cause", err, "request_id", problem.RequestID(r.Context()))
		w.Header().Set("Retry-After", "60")
		p.fail(w, r, problem.New(problem.Unavailable, "Our database does not answer at the moment. Try again in a minute."), "The status is not known")
		return
	}
	body, err := templates.Render("status", p.content(data))
	if err == nil {
		err = cache.NewEntry(body, http.Header{
			"Content-Type":  {"text/html; charset=utf-8"},
			"Cache-Control": {"public, max-age=30"},
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

// read is what is known, read again by one of those who ask when it is no
// longer fresh. The others get what was known before, and so do all while the
// database is away.
func (p *Page) read(ctx context.Context) (*shown, error) {
	known := p.known.Load()
	if known != nil {
		if p.now().Sub(known.at) < freshFor || !p.reading.TryLock() {
			return known, nil
		}
	} else {
		p.reading.Lock()
		if known = p.known.Load(); known != nil { // somebody was faster
			p.reading.Unlock()
			return known, nil
		}
	}
	defer p.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	now := p.now()
	all, whole, err := days(ctx, p.Store, now)
	switch {
	case err == nil:
		fresh := draw(all, whole)
		fresh.at = now
		p.known.Store(fresh)
		return fresh, nil
	case known != nil:
		again := *known
		again.at = now
		p.known.Store(&again)
		return known, nil
	}
	return nil, err
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
