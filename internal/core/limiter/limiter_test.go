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

func TestSlots(t *testing.T) {
	var s Slots[string]
	reserve := func(owner string, want error) func() {
		t.Helper()
		release, err := s.Reserve(owner, 2, 3)
		if err != want || (release == nil) != (err != nil) {
			t.Fatalf("%s, %d open: got %v, want %v", owner, s.Open(), err, want)
		}
		return release
	}
	first := reserve("a", nil)
	second := reserve("a", nil)
	reserve("a", ErrOwnerLimit)
	other := reserve("b", nil)
	reserve("b", ErrTotalLimit)
	first()
	again := reserve("b", nil)
	check.Equal(t, s.Open(), 3)
	check.Equal(t, len(s.byOwner), 2)
	for _, release := range []func(){second, other, again} {
		release()
	}
	check.Equal(t, s.Open(), 0)
	check.Equal(t, len(s.byOwner), 0)
}
