// Package quota counts the requests of each caller in a UTC day and rejects
// those beyond the caller's limit. It does not identify callers. The first row that
// applies to a request is what it costs:
//
//	a 304 that takes no more than the cache         nothing, also beyond the limit
//	a public saved query from the cache, without    nothing, up to 10 a second for an
//	key or token                                    address, also beyond the limit
//	the same thing again, see Gate.Once             nothing, also beyond the limit
//	a request beyond the limit                      nothing; the response is 429
//	a response with status 429                      1, refunded
//	a 401 that executed no query                    1, refunded
//	a 304 that executed a query                     1, refunded up to the limit a day
//	any other                                       1
//
// A handler that finds that sending the same thing again takes more work calls
// CountAgain, and one whose response takes as much work as several calls CountMore.
package quota

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"time"
)

// Day is a UTC day, counted from 1970-01-01.
type Day int

const dayLength = 24 * time.Hour

// DayOf returns the day of a moment.
func DayOf(t time.Time) Day { return Day(t.Unix() / int64(dayLength/time.Second)) }

// End returns the midnight that ends the day.
func (d Day) End() time.Time { return time.Unix((int64(d)+1)*int64(dayLength/time.Second), 0).UTC() }

func (d Day) String() string { return d.End().Add(-dayLength).Format(time.DateOnly) }

// Decision is the outcome for one request.
type Decision struct {
	Granted    bool
	Remaining  int           // also 0 if unlimited
	Reset      time.Time     // when the next quota starts
	RetryAfter time.Duration // from now until Reset
}

// Decide is the whole policy: it decides on the request that was counted as the
// count-th of its day. A limit of 0 is unlimited.
func Decide(now time.Time, day Day, limit, count int) Decision {
	reset := day.End()
	return Decision{
		Granted:    granted(limit, count),
		Remaining:  max(0, limit-count),
		Reset:      reset,
		RetryAfter: max(time.Second, (reset.Sub(now) + time.Second - 1).Truncate(time.Second)), // never too early
	}
}

func granted(limit, count int) bool { return limit == 0 || count <= limit }

// Store counts requests. It never fails: if it cannot reach Redis, it counts
// locally.
type Store interface {
	// Take counts a request, unless the limit is reached. It returns the count
	// including the request, which is above the limit if it was not counted.
	Take(ctx context.Context, s Subject, d Day, limit int) (count int)
	// Refund uncounts a request.
	Refund(ctx context.Context, s Subject, d Day)
	// Count returns the count without changing it.
	Count(ctx context.Context, s Subject, d Day) int
}

// Watched is a Store that reports when counting a request starts and ends.
type Watched struct {
	Store
	Watch func(context.Context) (done func())
}

// Take implements Store.
func (w Watched) Take(ctx context.Context, s Subject, d Day, limit int) int {
	defer w.Watch(ctx)()
	return w.Store.Take(ctx, s, d, limit)
}

// Subject identifies whose requests are counted together: an account, an IPv4
// address, or a /64 network of IPv6, which is one household or machine. It is the
// number itself rather than a hash, so that subjects never collide.
type Subject uint64

// Assigned IPv6 networks are above all of these.
const (
	ipv4Base    Subject = 1 << 32
	accountBase Subject = 2 << 32
	accountEnd  Subject = 3 << 32
)

// Account returns the subject of an account from its id.
func Account(id int) Subject { return accountBase | Subject(uint32(id)) }

// Hashed returns the subject of an account from a hash. It lies in an unassigned part of
// the IPv6 space.
func Hashed(hash uint64) Subject { return 1<<60 | Subject(hash>>4) }

// IsAccount reports whether a subject is an account.
func (s Subject) IsAccount() bool { return s>>60 == 1 || s >= accountBase && s < accountEnd }

// Address returns the subject of a caller without an account.
func Address(address netip.Addr) Subject {
	address = address.Unmap()
	if address.Is4() {
		bytes := address.As4()
		return ipv4Base | Subject(binary.BigEndian.Uint32(bytes[:]))
	}
	bytes := address.As16()
	return Subject(binary.BigEndian.Uint64(bytes[:8]))
}

// refunds returns the subject under which the refunds of a subject are counted.
// It lies in an unassigned part of the IPv6 space.
func (s Subject) refunds() Subject { return s ^ 1<<62 }

// mark returns the subject under which it is counted that a subject requested a thing.
// It is a hash in another unassigned part of the IPv6 space: a collision would make a
// request free.
func (s Subject) mark(name string) Subject {
	hash := fnv.New64a()
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(s)))
	_, _ = hash.Write([]byte(name))
	return 1<<63 | Subject(hash.Sum64()>>3)
}
