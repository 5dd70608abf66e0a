package status

import (
	"context"
	"database/sql"
	"net/http"
	"slices"
	"time"

	"palmares/internal/core/atomxml"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
)

// FeedPath is the path of the Atom feed of incidents.
const FeedPath = "/feeds/status.atom"

const (
	// minIncident is the number of minutes down that make an incident. A single
	// one counts towards the availability only.
	minIncident = 2
	// sameIncident is how many minutes up may be within an incident: a database
	// that comes and goes is one incident, not one every minute.
	sameIncident = 5

	shownIncidents  = 20 // on the page
	maxFeedEntries  = 100
	incidentMessage = "Requests failed, or no server was running."
)

// outage is a period of consecutive minutes that were down.
type outage struct{ start, end int } // minutes; end is the first that is up

// Incident is one or more outages at about the same time.
type Incident struct {
	Start time.Time  `json:"start"`       // identifies it
	End   *time.Time `json:"end"`         // nil while it lasts
	Down  int        `json:"unavailable"` // minutes
	end   int        // the first minute that is up
}

// downtime returns for how long the service was down.
func (i Incident) downtime(l lang.Language) string {
	if i.Down < 60 {
		return l.Plural(i.Down, "%d minute|%d minutes")
	}
	return l.Text("%d h %d min", i.Down/60, i.Down%60)
}

// selectOutages returns the gaps between the available minutes of a period and its end.
const selectOutages = `SELECT begun, id FROM (SELECT coalesce(lag(id) OVER (ORDER BY id) + 1, $1) AS begun, id FROM (
	SELECT id FROM minutes WHERE id >= $1 AND id < $2 AND ` + isUp + ` UNION ALL SELECT CAST($2 AS bigint)
) AS up) AS gaps WHERE begun < id ORDER BY id`

// readOutages returns the outages of days, oldest first. It reads only days with
// minutes down, which are few, and omits an outage that began before the first
// day, since its start, which identifies it, is unknown.
func readOutages(ctx context.Context, s *store.Store, days []Day) (all []outage, err error) {
	for _, day := range days {
		if day.Up == day.Minutes {
			continue
		}
		err := store.ScanRows(ctx, s.Keys, func(rows *sql.Rows) error {
			var o outage
			err := rows.Scan(&o.start, &o.end)
			if last := len(all) - 1; last >= 0 && all[last].end == o.start { // over midnight
				all[last].end = o.end
			} else {
				all = append(all, o)
			}
			return err
		}, selectOutages, day.start, day.start+day.Minutes)
		if err != nil {
			return nil, err
		}
	}
	if len(all) > 0 && all[0].start == minuteOf(days[0].Date) {
		all = all[1:]
	}
	return all, nil
}

// incidents returns the incidents that outages are part of, newest first. The
// service is down now if downSince is not zero.
func incidents(outages []outage, downSince, now time.Time) (all []Incident) {
	if !downSince.IsZero() {
		outages = append(slices.Clip(outages), outage{minuteOf(downSince), minuteOf(now) + 1})
	}
	for _, o := range outages {
		if last := len(all) - 1; last >= 0 && o.start-all[last].end <= sameIncident {
			all[last].Down += max(0, o.end-max(o.start, all[last].end))
			all[last].end = max(all[last].end, o.end)
		} else {
			all = append(all, Incident{Start: timeOf(o.start), Down: o.end - o.start, end: o.end})
		}
	}
	for i := range all {
		all[i].End = new(timeOf(all[i].end))
	}
	if !downSince.IsZero() {
		all[len(all)-1].End = nil
	}
	all = slices.DeleteFunc(all, func(i Incident) bool { return i.Down < minIncident })
	slices.Reverse(all)
	return all
}

// ServeFeed serves the incidents as an Atom feed.
func (p *Page) ServeFeed(w http.ResponseWriter, r *http.Request) {
	p.serveData(w, r, p.feed)
}

func (p *Page) feed(data *snapshot) (*cache.Entry, error) {
	status := atomxml.Page(p.PublicURL + Path)
	f := atomxml.Feed{
		ID: atomxml.Tag(p.PublicURL, "feeds/status.atom"), Title: atomxml.Text(p.ServiceName + ": Incidents"),
		Links:  []atomxml.Link{atomxml.Self(p.PublicURL + FeedPath), status},
		Author: atomxml.Text(p.ServiceName), AuthorURI: p.PublicURL,
	}
	for _, i := range data.Incidents[:min(len(data.Incidents), maxFeedEntries)] {
		e := atomxml.Entry{
			ID: atomxml.Tag(p.PublicURL, "status/"+i.Start.Format("2006-01-02T15:04Z")), Links: []atomxml.Link{status},
			Title: atomxml.Text("Ongoing: unavailable since " + formatMinute(i.Start)), Updated: atomxml.Time{Time: i.Start},
		}
		end := "ongoing"
		if i.End != nil {
			e.Title, e.Updated.Time, end = atomxml.Text("Resolved: unavailable for "+i.downtime(lang.English)), *i.End, formatMinute(*i.End)
		}
		e.Content = atomxml.Content{Type: "text", Text: atomxml.Text("Start: " + formatMinute(i.Start) + "\nEnd: " + end + "\n" + incidentMessage)}
		f.Entries = append(f.Entries, e)
	}
	return atomxml.NewEntry(f, data.caching())
}

func timeOf(minute int) time.Time { return time.Unix(int64(minute)*60, 0).UTC() }

func formatMinute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
