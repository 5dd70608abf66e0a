package search_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// benchmarkTools is the size of the catalog; SEARCH_TOOLS changes it.
func benchmarkTools() int {
	if n, err := strconv.Atoi(os.Getenv("SEARCH_TOOLS")); err == nil {
		return n
	}
	return 100_000
}

func onBothDatabases(b *testing.B, run func(b *testing.B, s *store.Store)) {
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": testkit.SQLite, "postgres": testkit.Postgres} {
		b.Run(name, func(b *testing.B) { run(b, testkit.Open(b, config(b))) })
	}
}

// BenchmarkFind runs different queries of each kind. Besides the mean, it
// reports the fastest query and the CPU time of this process, which includes
// SQLite, because both depend less on other load.
func BenchmarkFind(b *testing.B) {
	onBothDatabases(b, func(b *testing.B, s *store.Store) {
		feedtest.Publish(b, s, feedtest.Synthetic(b, synth.Options{Tools: benchmarkTools(), Seed: 1}))
		b.Run("load", func(b *testing.B) {
			for b.Loop() {
				check.OK(b, load(b, s, func(*search.Index, int) error { return nil }))
			}
		})
		for _, kind := range []struct {
			name  string
			query func(i int) string
		}{
			{"one rare word", func(i int) string { return fmt.Sprint(10_000 + i%90_000) }},
			{"two words, few tools", func(i int) string { return fmt.Sprint(1000+i%9000, " example") }},
			{"five words, few tools", func(i int) string { return fmt.Sprint(1000+i%9000, " agent code outil prix") }},
			{"five prefixes, few tools", func(i int) string { return fmt.Sprint(1000+i%9000, " e a c p") }},
			{"one prefix, 1000 tools", func(i int) string { return fmt.Sprint(10 + i%90) }},
			{"no tools", func(i int) string { return fmt.Sprint("qqq", i) }},
			{"two words, no tools", func(int) string { return "forge galet" }},
			{"typo", func(i int) string { return fmt.Sprint("exmaple ", 1000+i%9000) }},
			{"typo, no tools", func(i int) string { return fmt.Sprint("exmaple zzzzz", i) }},
			{"five typos, few tools", func(i int) string { return fmt.Sprint("exmaple otuil modelle reponce ", 1000+i%9000) }},
			{"one letter", func(i int) string { return string(rune('a' + i%26)) }},
			{"one common word", func(int) string { return "example" }},
			{"two common words", func(int) string { return "agent code" }},
			{"five common words", func(int) string { return "agent code outil prix page" }},
			{"five letters", func(int) string { return "a c d e p" }},
			{"16 letters", func(int) string { return "a b c d e f g i l m n o p r s t" }},
		} {
			b.Run(kind.name, func(b *testing.B) {
				err := load(b, s, func(index *search.Index, release int) error {
					tools, fastest, i := 0, time.Hour, 0
					before := cpuTime(b)
					for b.Loop() {
						i++
						start := time.Now()
						found, _, err := index.Find(release, text.Words(kind.query(i)), "")
						if err != nil {
							return err
						}
						tools, fastest = max(tools, len(found)), min(fastest, time.Since(start))
					}
					b.ReportMetric(float64(tools), "tools")
					b.ReportMetric(float64(fastest.Microseconds()), "fastest-µs")
					b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(i), "cpu-µs")
					return nil
				})
				check.OK(b, err)
			})
		}
	})
}

func load(b *testing.B, s *store.Store, do func(index *search.Index, release int) error) error {
	b.Helper()
	release, err := s.CurrentRelease(b.Context())
	if err != nil {
		return err
	}
	index, err := search.Load(b.Context(), s.Read, s.Dialect(), nil, 0)
	if err != nil {
		return err
	}
	return do(index, release.ID)
}

// BenchmarkImport reports the CPU time of this process only, without the work
// that a PostgreSQL server does.
func BenchmarkImport(b *testing.B) {
	onBothDatabases(b, func(b *testing.B, s *store.Store) {
		for b.Loop() {
			before := cpuTime(b)
			feedtest.Publish(b, s, feedtest.Synthetic(b, synth.Options{Tools: 5000, Seed: 1}))
			b.ReportMetric(float64((cpuTime(b) - before).Milliseconds()), "cpu-ms")
		}
	})
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	check.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
