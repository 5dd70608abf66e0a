package availability

import (
	"context"
	"fmt"
	"time"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/internal/store"
)

// Day is how a day went.
type Day struct {
	Date             time.Time
	Minutes          int // those that count: since the first that was kept, until now
	Good             int
	Requests, Failed int
}

// Known tells whether the day has a minute that counts.
func (d Day) Known() bool { return d.Minutes > 0 }

// Share is the part of the minutes that were good.
func (d Day) Share() float64 {
	if d.Minutes == 0 {
		return 0
	}
	return float64(d.Good) / float64(d.Minutes)
}

// Percent is the same for people. It says 100 only of a day without a fault.
func (d Day) Percent() string {
	switch percent := d.Share() * 100; {
	case !d.Known():
		return "not known"
	case d.Good == d.Minutes:
		return "100\u00a0%"
	case percent > 99.99:
		return "99.99\u00a0%"
	default:
		return fmt.Sprintf("%.2f\u00a0%%", percent)
	}
}

// A minute is good if a server was up, and at most one request in a hundred
// failed.
const summed = `SELECT id / 1440, count(*), sum(CASE WHEN failed * 100 <= requests THEN 1 ELSE 0 END), sum(requests), sum(failed)
	FROM minutes WHERE id >= %d AND id < %d GROUP BY id / 1440`

// Share is the part of the minutes of the last days, today among them, that
// were good; false while none is known.
func Share(ctx context.Context, s *store.Store, number int) (float64, bool, error) {
	_, whole, err := lastDays(ctx, s, time.Now(), min(number, keptDays))
	return whole.Share(), whole.Known(), err
}

// days are those that are shown.
func days(ctx context.Context, s *store.Store, now time.Time) (all []Day, whole Day, err error) {
	return lastDays(ctx, s, now, shownDays)
}

// lastDays are the last ones, oldest first, and all of them together.
func lastDays(ctx context.Context, s *store.Store, now time.Time, shown int) (all []Day, whole Day, err error) {
	end := minuteOf(now.Add(-writtenBy)) // which is not over, or may not be written down yet
	today := end / minutesADay
	first, known, err := firstMinute(ctx, s)
	if err != nil {
		return nil, whole, err
	}
	all = make([]Day, shown)
	for i := range all {
		number := today - shown + 1 + i
		begin := number * minutesADay
		all[i].Date = time.Unix(int64(begin)*60, 0).UTC()
		if known {
			all[i].Minutes = max(0, min(begin+minutesADay, end)-max(begin, first))
		}
	}
	rows, err := s.Current().QueryContext(ctx, fmt.Sprintf(summed, (today-shown+1)*minutesADay, end))
	if err != nil {
		return nil, whole, store.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var number, up, good, requests, failed int
		if err := rows.Scan(&number, &up, &good, &requests, &failed); err != nil {
			return nil, whole, store.Explain(err)
		}
		if i := number - (today - shown + 1); i >= 0 && i < len(all) {
			all[i].Good, all[i].Requests, all[i].Failed = good, requests, failed
		}
	}
	for _, day := range all {
		whole.Minutes += day.Minutes
		whole.Good += day.Good
		whole.Requests += day.Requests
		whole.Failed += day.Failed
	}
	return all, whole, store.Explain(rows.Err())
}

// firstMinute is the oldest that is kept.
func firstMinute(ctx context.Context, s *store.Store) (int, bool, error) {
	row, err := s.Current().Minute.Query().Order(minute.ByID()).First(ctx)
	if ent.IsNotFound(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, store.Explain(err)
	}
	return row.ID, true, nil
}
