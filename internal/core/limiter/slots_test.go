package limiter

import "testing"

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
	if s.Open() != 3 || len(s.byOwner) != 2 {
		t.Errorf("got %d open of %d owners, want 3 of 2", s.Open(), len(s.byOwner))
	}
	for _, release := range []func(){second, other, again} {
		release()
	}
	if s.Open() != 0 || len(s.byOwner) != 0 {
		t.Errorf("got %d open of %d owners, want none", s.Open(), len(s.byOwner))
	}
}
