package limiter

import (
	"testing"
	"time"

	"palmares/internal/dev/check"
)

func TestRate(t *testing.T) {
	now := time.Unix(60, 0)
	rate := &Rate[int]{Limit: 3, Now: func() time.Time { return now }}
	for _, step := range []struct {
		subject int
		n       int
		later   time.Duration
		want    bool
	}{
		{1, 2, 0, true}, {1, 1, 0, true}, {1, 1, 0, false}, {2, 3, 0, true}, {1, 1, 59 * time.Second, false}, {1, 3, time.Second, true}, {2, 4, 0, false},
	} {
		now = now.Add(step.later)
		check.Equal(t, rate.Take(step.subject, step.n), step.want, "%+v", step)
	}
}
