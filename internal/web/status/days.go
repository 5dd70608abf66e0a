package status

import (
	"context"
	"fmt"
	"time"

	"palmares/internal/core/store"
)

// Day is how a day went.
type Day struct {
	Date    time.Time
	Minutes int // that count: from the first that was recorded until now
	Good    int
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

// A minute is good if a server was running and its checks succeeded. Earlier
// versions counted requests, of which one in a hundred was allowed to fail.
const summed = `SELECT id / 1440, sum(CASE WHEN failed * 100 <= requests THEN 1 ELSE 0 END), min(id)
	FROM minutes WHERE id >= %d AND id < %d GROUP BY id / 1440`

// Share is the part of the minutes of the last days, today among them, that
// were good; false while none is known.
func Share(ctx context.Context, s *store.Store, number int) (float64, bool, error) {
	_, whole, err := lastDays(ctx, s, time.Now(), min(number, shownDays))
	return whole.Share(), whole.Known(), err
}

// days are those that are shown.
func days(ctx context.Context, s *store.Store, now time.Time) (all []Day, whole Day, err error) {
	return lastDays(ctx, s, now, shownDays)
}

// lastDays returns the last days, oldest first, and their total. They count
// from the first minute that was recorded in them; what a clock that was set
// wrong recorded before or after them is left out.
func lastDays(ctx context.Context, s *store.Store, now time.Time, shown int) (all []Day, whole Day, err error) {
	end := minuteOf(now.Add(-writtenBy)) // which is not over, or may not be written yet
	oldest := end/minutesADay - shown + 1
	// Readers' connections may all be taken by callers' long queries.
	rows, err := s.Keys.QueryContext(ctx, fmt.Sprintf(summed, oldest*minutesADay, end))
	if err != nil {
		return nil, whole, store.Explain(err)
	}
	defer rows.Close()
	all = make([]Day, shown)
	first := end
	for rows.Next() {
		var number, good, earliest int
		if err := rows.Scan(&number, &good, &earliest); err != nil {
			return nil, whole, store.Explain(err)
		}
		all[number-oldest].Good = good
		first = min(first, earliest)
	}
	if err := rows.Err(); err != nil {
		return nil, whole, store.Explain(err)
	}
	for i := range all {
		begin := (oldest + i) * minutesADay
		all[i].Date = time.Unix(int64(begin)*60, 0).UTC()
		all[i].Minutes = max(0, min(begin+minutesADay, end)-max(begin, first))
		whole.Minutes += all[i].Minutes
		whole.Good += all[i].Good
	}
	return all, whole, nil
}
