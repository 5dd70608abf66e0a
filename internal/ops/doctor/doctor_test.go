package doctor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/dev/testkit"
)

// The databases' clocks are compared with the server's, which may be ahead or
// behind.
func TestClockOffsets(t *testing.T) {
	redis, database := testkit.StartRedis(t).URL, testkit.Postgres(t)
	db := testkit.Open(t, database)
	defer db.Close()
	for ahead, want := range map[time.Duration]State{
		0: OK, time.Second: OK, 5 * time.Second: Warning, -5 * time.Second: Warning, 5 * time.Minute: Wrong, -5 * time.Minute: Wrong,
	} {
		found := Examine(t.Context(), Config{
			Listen: "127.0.0.1:0", Private: true, DatabaseURL: database.DatabaseURL, RedisURL: redis,
			Now: func() time.Time { return time.Now().Add(-ahead) },
		})
		seen := 0
		for _, f := range found {
			if f.Check != "database clock" && f.Check != "redis clock" {
				continue
			}
			seen++
			if f.State != want {
				t.Errorf("%s at an offset of %s: got %s (%s), want %s", f.Check, ahead, f.State, f.Message, want)
			}
		}
		if seen != 2 {
			t.Errorf("got %d clock findings, want 2: %+v", seen, found)
		}
	}
}

// A check that hangs does not delay the others beyond the limit.
func TestHangingCheck(t *testing.T) { synctest.Test(t, testHangingCheck) }

func testHangingCheck(t *testing.T) {
	original := checks
	defer func() { checks = original }()
	end := make(chan struct{})
	defer close(end)
	checks = []check{{"hangs", func(_ context.Context, _ *Config, r report) {
		r.ok("starts", "The check starts.")
		<-end
		r.ok("hangs", "too late")
	}}, {"settings", checkSettings}}
	start := time.Now()
	found := Examine(t.Context(), Config{Limit: 50 * time.Millisecond})
	if len(found) != 3 || found[0].Check != "starts" || found[1].State != Wrong || found[2].State != OK {
		t.Errorf("got %+v, want ok, wrong and ok", found)
	}
	if took, want := time.Since(start), 50*time.Millisecond+grace; took != want {
		t.Errorf("got %s, want %s", took, want)
	}
	if Worst(found) != Wrong || Worst(found[2:]) != OK {
		t.Errorf("got worst states %s and %s, want wrong and ok", Worst(found), Worst(found[2:]))
	}
}
