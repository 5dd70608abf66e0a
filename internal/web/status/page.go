package status

import (
	"context"
	"database/sql"
	"embed"
	"html/template"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
)

// Path is the path of the status page.
const Path = "/status"

// Config configures the status page.
type Config struct {
	page.Service
	Store     *store.Store
	DownSince func() time.Time // returns when the database became unavailable, or zero
}

// Page shows the availability of the last days.
type Page struct {
	Config
	now    func() time.Time
	reads  singleflight.Group
	latest atomic.Pointer[snapshot]
}

// snapshot is the data of the page.
type snapshot struct {
	Days        []Day
	Total       Day
	Today       Day
	Since       time.Time // first day with data
	ReadAt      time.Time
	Unavailable bool // whether the database is unavailable now
	Incidents   []Incident
	outages     []outage
}

// BelowTarget reports whether today's availability is below the target.
func (s *snapshot) BelowTarget() bool { return s.Today.band() == "poor" }

// Recent returns the newest incidents.
func (s *snapshot) Recent() []Incident { return s.Incidents[:min(len(s.Incidents), shownIncidents)] }

// caching is the Cache-Control of the page and the feed.
func (s *snapshot) caching() string {
	if s.Unavailable {
		return "no-store"
	}
	return "public, max-age=30"
}

// chart draws the availability of each day. Days without data are a thin strip of another color.
func (s *snapshot) chart(l lang.Language) template.HTML {
	t := chart.Table{Kind: chart.Columns, Unit: chart.Proportion, X: chart.Dates(l, s.Days[0].Date, s.Today.Date.AddDate(0, 0, 1))}
	for _, d := range s.Days {
		height := max(d.Availability(), 0.03)
		t.Add(chart.Slot{From: chart.Time(d.Date), To: chart.Time(d.Date.AddDate(0, 0, 1))}, "", &height)
	}
	plots, _ := t.Plots(l)
	plots[0].Y = chart.Numbers(l, chart.Proportion, []float64{0, 1}, true, 2)
	for i, p := range plots[0].Series[0].Points {
		p.Text, p.Label, p.Color = chart.Title(l.ShortDay(s.Days[i].Date), s.Days[i].percent(l)), "", s.Days[i].band()
		plots[0].Series[0].Points[i] = p
	}
	shown := chart.Chart{Title: l.Text("Availability by day, as in the table"), Content: plots}
	return shown.HTML()
}

//go:embed templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", func(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"date": func(t time.Time) string { return t.Format(time.DateOnly) }, "shortDay": l.ShortDay, "minute": l.Time,
		"feed": func() string { return FeedPath }, "json": func() string { return JSONPath }, "down": func(i Incident) string { return i.downtime(l) },
		"target":  func() string { return l.Text("%s%%", l.Decimal(Target, 0, 2)) },
		"percent": func(d Day) string { return d.percent(l) }, "chart": func(s *snapshot) template.HTML { return s.chart(l) },
	}
})

// NewPage returns the handler of the page.
func NewPage(cfg Config) *Page { return &Page{Config: cfg, now: time.Now} }

const (
	shownDays = 90
	// Target is the availability that the Pro plan aims for, in percent.
	Target = 99
	// freshFor is how long a snapshot is shown before it is read again.
	freshFor = 30 * time.Second
	// readTimeout is how long a visitor waits for the database.
	readTimeout = 3 * time.Second
)

// ServeHTTP shows the page. While the database is unavailable, it says so and
// shows the last snapshot.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.Handle(page.FormPolicy, func(w http.ResponseWriter, r *http.Request) error {
		l := lang.Of(r.Context())
		data, err := p.read()
		if err != nil {
			p.Fail(w, r, page.ErrNoDatabase(err), p.content(l, nil), page.ErrorPage{Title: l.Text("Status unknown")})
			return nil
		}
		w.Header().Set("Link", "<"+FeedPath+`>; rel="alternate"; type="application/atom+xml"; title="Incidents"`)
		content := p.content(l, data)
		content.AsMarkdown = page.WantsMarkdown(r)
		return templates.Send(w, r, "status", content, data.caching())
	})(w, r)
}

func (p *Page) content(l lang.Language, data any) page.Content {
	content := p.Content(l, Path, page.Head{}, data)
	content.Markdown = page.MarkdownPath(Path)
	return content
}

// read returns a fresh snapshot, reading it once for all concurrent visitors. While
// that fails, they see the last snapshot.
func (p *Page) read() (*snapshot, error) {
	last, downSince := p.latest.Load(), p.DownSince()
	if last == nil || downSince.IsZero() && p.now().Sub(last.ReadAt).Abs() >= freshFor {
		_, err, _ := p.reads.Do("", func() (any, error) { return nil, p.refresh() })
		if last = p.latest.Load(); last == nil {
			return nil, err
		}
	}
	shown := *last
	shown.Unavailable = !downSince.IsZero()
	shown.Incidents = incidents(shown.outages, downSince, p.now())
	return &shown, nil
}

// refresh reads a new snapshot. If that fails, the last one stays.
func (p *Page) refresh() error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	now := p.now()
	days, total, err := readDays(ctx, p.Store, now, shownDays)
	var outages []outage
	if err == nil {
		outages, err = readOutages(ctx, p.Store, days)
	}
	if err != nil {
		if p.latest.Load() != nil { // otherwise it is logged with the request
			p.Log.Warn("reading status days failed", "cause", err)
		}
		return err
	}
	s := &snapshot{Days: days, Total: total, Today: days[len(days)-1], ReadAt: now, outages: outages}
	if first := slices.IndexFunc(days, Day.Known); first >= 0 {
		s.Since = days[first].Date
	}
	p.latest.Store(s)
	return nil
}

// Day is the availability of one day, or of several.
type Day struct {
	Date    time.Time `json:"date,format:DateOnly"`
	Minutes int       `json:"minutes"`   // since the first recorded minute
	Up      int       `json:"available"` // minutes
	start   int       // the first minute that counts
}

// Known reports whether there is any data for the day.
func (d Day) Known() bool { return d.Minutes > 0 }

// Availability returns the share of available minutes.
func (d Day) Availability() float64 {
	if d.Minutes == 0 {
		return 0
	}
	return float64(d.Up) / float64(d.Minutes)
}

// percent formats the availability. It is 100% only without any failure.
func (d Day) percent(l lang.Language) string {
	switch percent := d.Availability() * 100; {
	case !d.Known():
		return l.Text("no data")
	case d.Up == d.Minutes:
		return l.Text("%s%%", l.Decimal(100, 0, 0))
	default:
		return l.Text("%s%%", l.Decimal(min(percent, 99.99), 2, 2))
	}
}

// BudgetLeft returns the whole minutes that are left of the error budget, rounded down, or
// a negative number once more are unavailable than it has.
func (d Day) BudgetLeft() int { return int(math.Floor(d.budget().Remaining)) }

// band is the color of the day's bar.
func (d Day) band() string {
	switch {
	case !d.Known():
		return "grid"
	case d.Up == d.Minutes:
		return "excellent"
	case d.Availability()*100 >= Target:
		return "fair"
	}
	return "poor"
}

// Down returns how many of the last minutes before now were unavailable.
func Down(ctx context.Context, s *store.Store, now time.Time, minutes int) (down int, err error) {
	end := minuteOf(now.Add(-writeDelay))
	err = store.ScanRows(ctx, s.Keys, func(rows *sql.Rows) error {
		var up int
		first := end
		err := rows.Scan(&up, &first)
		down = max(0, end-max(first, end-minutes)-up) // the first minute may have just begun
		return err
	}, downQuery, end-minutes, end)
	return down, err
}

const downQuery = `SELECT coalesce(sum(CASE WHEN ` + isUp + ` THEN 1 ELSE 0 END), 0), coalesce((SELECT min(id) FROM minutes), $2)
	FROM minutes WHERE id >= $1 AND id < $2`

// Availability returns the availability of the last days including today. ok is false
// if there is no data.
func Availability(ctx context.Context, s *store.Store, days int) (availability float64, ok bool, err error) {
	_, total, err := readDays(ctx, s, time.Now(), min(days, shownDays))
	return total.Availability(), total.Known(), err
}

const sumByDay = `SELECT id / 1440, sum(CASE WHEN ` + isUp + ` THEN 1 ELSE 0 END), min(id)
	FROM minutes WHERE id >= $1 AND id < $2 GROUP BY id / 1440`

// readDays returns the last days, oldest first, and their total. Days before the
// first recorded minute have no data, and minutes with a date out of range, from
// a wrong clock, are ignored.
func readDays(ctx context.Context, s *store.Store, now time.Time, count int) (days []Day, total Day, err error) {
	end := minuteOf(now.Add(-writeDelay))
	oldest := end/minutesPerDay - count + 1
	days = make([]Day, count)
	first := end
	// Clients' queries may occupy all connections for reading.
	err = store.ScanRows(ctx, s.Keys, func(rows *sql.Rows) error {
		var number, up, earliest int
		if err := rows.Scan(&number, &up, &earliest); err != nil {
			return err
		}
		days[number-oldest].Up = up
		first = min(first, earliest)
		return nil
	}, sumByDay, oldest*minutesPerDay, end)
	if err != nil {
		return nil, total, err
	}
	for i := range days {
		start := (oldest + i) * minutesPerDay
		days[i].Date = timeOf(start)
		days[i].start = max(start, first)
		days[i].Minutes = max(0, min(start+minutesPerDay, end)-days[i].start)
		total.Minutes += days[i].Minutes
		total.Up += days[i].Up
	}
	return days, total, nil
}
