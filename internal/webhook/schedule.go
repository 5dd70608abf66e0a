package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// retries are how long after a failed attempt the next one is made.
var retries = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// maxWait bounds what a receiver may ask for.
	maxWait = 24 * time.Hour
	// patience is how long an endpoint may fail before it is disabled.
	patience = 5 * 24 * time.Hour
	// attemptsKept is how far back attempts are shown.
	attemptsKept = 30 * 24 * time.Hour
)

// nextAttempt is when to try again after so many attempts; false for never. It
// is up to a tenth later than planned, so that many do not come together
// again, and not before the receiver wants it.
func nextAttempt(attempts int, now time.Time, wanted time.Duration) (time.Time, bool) {
	if attempts > len(retries) {
		return time.Time{}, false
	}
	wait := retries[attempts-1]
	wait += time.Duration(rand.Int64N(int64(wait) / 10))
	return now.Add(max(wait, min(wanted, maxWait))), true
}

// retryAfter is how long a receiver wants to be left alone.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxWait.Seconds()))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
