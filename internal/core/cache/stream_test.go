package cache

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

// silentWriter discards a response.
type silentWriter struct{ header http.Header }

func (w silentWriter) Header() http.Header         { return w.header }
func (w silentWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w silentWriter) WriteHeader(int)             {}

// Streams whose clients read slowly take little memory in every encoding.
func TestMemoryOfStreams(t *testing.T) {
	const streams, most = 4, 5 << 20
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for _, encoding := range []string{"identity", "gzip", "br", "zstd"} {
		before := heap()
		started, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, streams)
		for range streams {
			go func() {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", encoding+", identity;q=0.1")
				entry := NewEntry([]byte("list"), http.Header{})
				ended <- Response{Entry: entry}.Stream(silentWriter{http.Header{}}, r, time.Minute, func(w io.Writer) error {
					for i := range 60_000 { // megabytes
						if _, err := fmt.Fprintf(w, "Outil %d, note %d, à partir de %d €/mois\n", i, i*7919%1000, i*104_729%10_007); err != nil {
							return err
						}
					}
					started <- struct{}{}
					<-finish
					return nil
				})
			}()
		}
		for range streams {
			<-started
		}
		each := (heap() - before) / streams
		check.True(t, each <= most, "%s: got %d bytes for each stream, want at most %d", encoding, each, most)
		close(finish)
		for range streams {
			check.Equal(t, <-ended, nil, encoding)
		}
	}
}
