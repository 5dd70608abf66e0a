package ledger

import (
	"maps"
	"testing"

	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
)

// FuzzCounts checks that stored counts are read as they were written, and that other bytes
// are an error or counts.
func FuzzCounts(f *testing.F) {
	f.Add(encode(map[quota.Subject]int{1: 5, 1 << 40: -3}), uint64(7), 9)
	f.Add([]byte{1, 2, 3}, uint64(0), -1)
	f.Fuzz(func(t *testing.T, data []byte, subject uint64, count int) {
		read := map[quota.Subject]int{}
		if decode(data, read) == nil {
			again := map[quota.Subject]int{}
			if err := decode(encode(read), again); err != nil || !maps.Equal(again, read) {
				t.Errorf("%x: got %v and %v after writing, want %v", data, again, err, read)
			}
		}
		again := map[quota.Subject]int{}
		check.OK(t, decode(encode(map[quota.Subject]int{quota.Subject(subject): count}), again), subject)
		check.Equal(t, again[quota.Subject(subject)], count, subject)
	})
}
