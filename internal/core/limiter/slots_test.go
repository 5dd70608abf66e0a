package limiter

import (
	"testing"

	"palmares/internal/dev/check"
)

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
