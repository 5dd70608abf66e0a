package doctor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/dev/testkit"
)

// A clock that goes wrong is ours as often as theirs.
func TestClocksApart(t *testing.T) {
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
				t.Errorf("%s: %+v", ahead, f)
			}
		}
		if seen != 2 {
			t.Errorf("%d clocks were looked at: %+v", seen, found)
		}
	}
}

// Whatever hangs, the others are told, and in time.
func TestHangingCheck(t *testing.T) {
	synctest.Test(t, testHangingCheck) // whose clock is its own
}

func testHangingCheck(t *testing.T) {
	real := checks
	defer func() { checks = real }()
	end := make(chan struct{})
	defer close(end)
	checks = []check{{"hangs", func(_ context.Context, _ *Config, r *report) {
		r.ok("begins", "It begins.")
		<-end
		r.ok("hangs", "too late")
	}}, {"settings", settings}}
	start := time.Now()
	found := Examine(t.Context(), Config{Limit: 50 * time.Millisecond})
	if len(found) != 3 || found[0].Check != "begins" || found[1].State != Wrong || found[2].State != OK {
		t.Errorf("got %+v", found)
	}
	if took, want := time.Since(start), 50*time.Millisecond+grace; took != want {
		t.Errorf("got %s on the test's own clock, want %s", took, want)
	}
	if Worst(found) != Wrong || Worst(found[2:]) != OK {
		t.Error("the worst is not the worst")
	}
}
