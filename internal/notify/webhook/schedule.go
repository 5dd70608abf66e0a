package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
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

// nextAttempt is when to try again after so many attempts; false for never.
func nextAttempt(attempts int, now time.Time) (time.Time, bool) {
	if attempts > len(retries) {
		return time.Time{}, false
	}
	return now.Add(withJitter(retries[attempts-1])), true
}

// withJitter is up to a tenth longer, so that many do not come together again.
func withJitter(wait time.Duration) time.Duration {
	return wait + time.Duration(rand.Int64N(int64(wait)/10))
}

// retryAfter is how long a receiver wants to be left alone.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds > int(maxWait.Seconds()) { // it may be more than a number can be
			return maxWait
		}
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxWait)
	}
	return 0
}

// leftAloneUntil is when a receiver may be sent to that asked for time; zero if
// it did not. It has a little more than it asked for.
func leftAloneUntil(done []*task, now time.Time) (until time.Time) {
	var longest time.Duration
	for _, t := range done {
		longest = max(longest, t.outcome.wait)
	}
	if longest == 0 {
		return until
	}
	return now.Add(withJitter(longest))
}
