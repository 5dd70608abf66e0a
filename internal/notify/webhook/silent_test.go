package webhook

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// silentOnes are so many accounts, each with all its endpoints at a receiver
// that never answers.
func silentOnes(t *testing.T, s *site, accounts int) (endpoints []*ent.Endpoint) {
	t.Helper()
	r := newReceiver(t)
	end := make(chan struct{})
	r.answers(func(_ int, _ http.ResponseWriter, req *http.Request) {
		select {
		case <-end:
		case <-req.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	for i := range accounts {
		owner, err := auth.NewAccounts(s.Store).Create(t.Context(), fmt.Sprintf("silent-%d@example.com", i), auth.Pro)
		if err != nil {
			t.Fatal(err)
		}
		for range MostEndpoints {
			e, err := s.Add(t.Context(), owner, Wish{URL: r.URL})
			if err != nil {
				t.Fatal(err)
			}
			endpoints = append(endpoints, e)
		}
	}
	return endpoints
}

// Endpoints of some accounts that are all silent keep nobody else waiting: an
// attempt takes an hour here, and who answers has all long before.
func TestSilentOnesDelayNobody(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		silentOnes(t, s, 6)
		s.timing.attempt = time.Hour
		s.timing.prompt = defaultTiming.prompt
		good := newReceiver(t)
		s.add(Wish{URL: good.URL})
		tell(t, db, 5)
		background(t, s.Run)
		good.wait(t, 6)
		tell(t, db, 0)
		good.wait(t, 7)
	})
}

// Those that were silent before keep nobody waiting, however many they are.
func TestFailingOnesHaveTheirOwnQueue(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.maxWorkers = 5
		s.timing.attempt = time.Hour
		for _, e := range silentOnes(t, s, 1) {
			if err := db.Write.Endpoint.UpdateOneID(e.ID).SetFailures(1).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		good := newReceiver(t)
		s.add(Wish{URL: good.URL})
		tell(t, db, 5)
		background(t, s.Run)
		good.wait(t, 6)
	})
}
