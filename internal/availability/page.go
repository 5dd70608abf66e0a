package availability

import (
	"context"
	"embed"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

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

	mu    sync.Mutex
	known *shown // as it last was
}

// shown is the data of the page.
type shown struct {
	Days   []bar
	Whole  Day
	Today  Day
	Target float64
	Width  int
	at     time.Time
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
		problem.Write(w, problem.New(problem.WrongMethod, "This page is for reading."))
		return
	}
	data, err := p.read(r.Context())
	if err != nil {
		p.Log.Error("the days cannot be read", "cause", err, "request_id", problem.RequestID(r.Context()))
		problem.Write(w, problem.New(problem.Unavailable, "Our database does not answer at the moment."))
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=30")
	content := page.Content{Service: p.ServiceName, Credit: p.Credit, Here: Path, Data: data, Head: page.Head{Styles: []string{Assets.Path("status.css")}}}
	if err := templates.Write(w, http.StatusOK, "status", content); err != nil {
		p.Log.Error("the page of days is wrong", "cause", err)
		problem.Write(w, err)
	}
}

func (p *Page) read(ctx context.Context) (*shown, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.known != nil && now.Sub(p.known.at) < freshFor {
		return p.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	all, whole, err := days(ctx, p.Store, now)
	if err != nil {
		if p.known != nil {
			return p.known, nil
		}
		return nil, err
	}
	p.known = draw(all, whole)
	p.known.at = now
	return p.known, nil
}

func draw(all []Day, whole Day) *shown {
	s := &shown{Whole: whole, Today: all[len(all)-1], Target: target, Width: len(all) * barStep}
	for i, day := range all {
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
