package webhook

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

// FuzzRetryAfter checks that a receiver can postpone its events for at most a day, and that
// seconds and dates mean the same.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "120", "-1", "99999999999999999999", "Wed, 18 Nov 2026 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "1.5", " 5"} {
		f.Add(value, uint16(120))
	}
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string, seconds uint16) {
		wait := func(value string) time.Duration { return retryAfter(http.Header{"Retry-After": {value}}, now) }
		got := wait(value)
		check.True(t, got >= 0 && got <= maxWait, "%q: got %s, want at most %s", value, got, maxWait)
		want := time.Duration(seconds) * time.Second
		check.Equal(t, wait(strconv.Itoa(int(seconds))), want, "%d", seconds)
		date := now.Add(want).Format(http.TimeFormat)
		check.Equal(t, wait(date), want)
	})
}
