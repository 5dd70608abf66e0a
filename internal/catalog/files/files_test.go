package files

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"palmares/internal/core/store"
)

func TestMeasure(t *testing.T) {
	dir := os.Getenv("MEASURE")
	if dir == "" {
		t.Skip()
	}
	s, err := store.Open(t.Context(), store.Config{DataDir: dir, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	out := t.TempDir()
	var peak uint64
	start := time.Now()
	files, err := Write(t.Context(), s, 0, out, Kinds{os.Getenv("NOSQLITE") == "", os.Getenv("NOPARQUET") == ""}, func(int64) error {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	t.Log("cpu", time.Duration(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano()), "wall", time.Since(start), "peak heap", peak>>20, "rss", after.Maxrss>>10)
	for _, f := range files {
		t.Log(f)
	}
}
