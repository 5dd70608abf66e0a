package quota

import (
	"maps"
	"testing"
)

// FuzzCounts checks that stored counts are read as they were written, and that other bytes
// are an error or counts.
func FuzzCounts(f *testing.F) {
	l := &Ledger{addresses: true}
	f.Add(l.encode(map[Subject]int{1: 5, 1 << 40: -3}), uint64(7), 9)
	f.Add([]byte{1, 2, 3}, uint64(0), -1)
	f.Fuzz(func(t *testing.T, data []byte, subject uint64, count int) {
		read := map[Subject]int{}
		if decode(data, read) == nil {
			maps.DeleteFunc(read, func(s Subject, _ int) bool { _, isAccount := s.account(); return isAccount })
			again := map[Subject]int{}
			if err := decode(l.encode(read), again); err != nil || !maps.Equal(again, read) {
				t.Errorf("%x: got %v and %v after writing, want %v", data, again, err, read)
			}
		}
		again := map[Subject]int{}
		if err := decode(l.encode(map[Subject]int{Subject(subject): count}), again); err != nil || len(again) > 0 && again[Subject(subject)] != count {
			t.Errorf("%d of %d: got %v and %v, want the same", count, subject, again, err)
		}
	})
}
