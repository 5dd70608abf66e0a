// Package quota counts requests: how many of whom in one UTC day, and how many
// are left. It decides nothing about who is calling, nor what they may read.
package quota

import (
	"context"
	"time"
)

// Day is a day in UTC, counted from the first of 1970.
type Day int

const dayLength = 24 * time.Hour

// DayOf is the day of a moment.
func DayOf(t time.Time) Day { return Day(t.Unix() / int64(dayLength/time.Second)) }

// End is the midnight that ends the day.
func (d Day) End() time.Time { return time.Unix((int64(d)+1)*int64(dayLength/time.Second), 0).UTC() }

func (d Day) String() string { return d.End().Add(-dayLength).Format(time.DateOnly) }

// Decision is what a count means.
type Decision struct {
	Granted    bool
	Remaining  int           // 0 where there is no bound, too
	Reset      time.Time     // when the quota is full again
	RetryAfter time.Duration // until then
}

// Decide is the whole policy: with a request that was counted as the count-th
// of its day, is it answered? A quota of 0 has no bound.
func Decide(now time.Time, day Day, quota, count int) Decision {
	reset := day.End()
	return Decision{
		Granted:    quota == 0 || count <= quota,
		Remaining:  max(0, quota-count),
		Reset:      reset,
		RetryAfter: max(time.Second, (reset.Sub(now) + time.Second - 1).Truncate(time.Second)), // never too early
	}
}

// Store counts. It never fails: what it cannot ask others it decides alone.
type Store interface {
	// Take counts a request, unless the quota is spent. The count that it
	// returns is with the request, past the quota if it was not counted.
	Take(ctx context.Context, s Subject, d Day, quota int) (count int)
	// GiveBack takes a request out of the count again.
	GiveBack(ctx context.Context, s Subject, d Day)
}
