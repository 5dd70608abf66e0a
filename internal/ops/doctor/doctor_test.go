package doctor

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The databases' clocks are compared with the server's, which may be ahead or
// behind.
func TestClockOffsets(t *testing.T) {
	testClockOffsets(t, "database clock", Config{DatabaseURL: testkit.Postgres(t).DatabaseURL})
}

func TestClockOffsetsWithRedis(t *testing.T) {
	testClockOffsets(t, "redis clock", Config{RedisURL: testkit.StartRedis(t).URL})
}

func testClockOffsets(t *testing.T, name string, cfg Config) {
	t.Helper()
	cfg.Listen, cfg.Private = "127.0.0.1:0", true
	for ahead, want := range map[time.Duration]State{
		0: OK, time.Second: OK, 5 * time.Second: Warning, -5 * time.Second: Warning, 5 * time.Minute: Wrong, -5 * time.Minute: Wrong,
	} {
		cfg.Now = func() time.Time { return time.Now().Add(-ahead) }
		found := Examine(t.Context(), cfg)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Check == name })
		check.True(t, i >= 0 && found[i].State == want, "%s at an offset of %s: got %+v, want %s", name, ahead, found, want)
	}
}

// A check that hangs does not delay the others beyond the limit.
func TestHangingCheck(t *testing.T) { synctest.Test(t, testHangingCheck) }

func testHangingCheck(t *testing.T) {
	original := checks
	defer func() { checks = original }()
	end := make(chan struct{})
	defer close(end)
	checks = []examination{{"hangs", func(_ context.Context, _ *Config, r report) {
		r.ok("starts", "The check starts.")
		<-end
		r.ok("hangs", "too late")
	}}, {"settings", checkSettings}}
	start := time.Now()
	found := Examine(t.Context(), Config{Limit: 50 * time.Millisecond})
	check.True(t, len(found) == 3 && found[0].Check == "starts" && found[1].State == Wrong && found[2].State == OK, "got %+v, want ok, wrong and ok", found)
	check.Equal(t, time.Since(start), 50*time.Millisecond+grace)
	check.Equal(t, Worst(found), Wrong, "want wrong and ok")
	check.Equal(t, Worst(found[2:]), OK, "want wrong and ok")
}
