package status

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// JSONPath is the path of the availability for programs.
const JSONPath = "/status.json"

// report is the page for programs. docs/api.md describes its fields.
type report struct {
	Status      string     `json:"status"` // operational or unavailable
	ReadAt      time.Time  `json:"read_at"`
	Objective   float64    `json:"objective"`
	Minutes     int        `json:"minutes"`
	Available   int        `json:"available"`
	ErrorBudget budget     `json:"error_budget"`
	Days        []Day      `json:"days"`
	Incidents   []Incident `json:"incidents"`
}

// budget is how many minutes may be unavailable without missing the objective, and how
// many of them are left, which is negative once it is missed.
type budget struct {
	Minutes   float64 `json:"minutes"`
	Remaining float64 `json:"remaining"`
}

// budget returns the error budget of a period.
func (d Day) budget() budget {
	minutes := float64(d.Minutes) * (100 - Target) / 100
	return budget{minutes, minutes - float64(d.Minutes-d.Up)}
}

// ServeJSON serves the page for programs.
func (p *Page) ServeJSON(w http.ResponseWriter, r *http.Request) {
	p.serveData(w, r, func(s *snapshot) (*cache.Entry, error) {
		body, err := json.Marshal(s.report())
		return cache.NewEntry(body, http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {s.caching()}, "Vary": {page.Vary}, "X-Content-Type-Options": {"nosniff"},
		}), err
	})
}

// serveData serves a fresh snapshot in another form, or an error that is not a page.
func (p *Page) serveData(w http.ResponseWriter, r *http.Request, write func(*snapshot) (*cache.Entry, error)) {
	page.Handler(func(w http.ResponseWriter, r *http.Request) error {
		data, err := p.read()
		if err != nil {
			p.Log.ErrorContext(r.Context(), "reading status days failed", "cause", err, "request_id", problem.RequestID(r.Context()))
			return &problem.Problem{Code: problem.Unavailable, Message: "Our database is unavailable at the moment.", Cause: err}
		}
		entry, err := write(data)
		if err != nil {
			return err
		}
		return entry.Write(w, r)
	})(w, r)
}

func (s *snapshot) report() report {
	all := report{
		Status: "operational", ReadAt: s.ReadAt.UTC(), Objective: Target / 100., Minutes: s.Total.Minutes, Available: s.Total.Up,
		ErrorBudget: s.Total.budget(), Incidents: s.Incidents,
		Days: slices.DeleteFunc(slices.Clone(s.Days), func(d Day) bool { return !d.Known() }),
	}
	if s.Unavailable {
		all.Status = "unavailable"
	}
	return all
}
