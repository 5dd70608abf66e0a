package auth_test

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// service is a server with its own clock, which saves its counts only on demand.
type service struct {
	t        *testing.T
	store    *store.Store
	now      time.Time
	accounts *auth.Accounts
	ledger   *ledger.Ledger
	handler  http.Handler
}

const daily = 1000 // requests of the Developer plan

func newService(t *testing.T, db *store.Store) *service {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s := &service{t: t, store: db, now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC), accounts: auth.NewAccounts(db)}
	clock := func() time.Time { return s.now }
	keyring, counter := auth.NewKeyring(db, log, auth.Rules{}), quota.NewCounter()
	auth.SetClock(clock, s.accounts, keyring)
	s.ledger = ledger.New(db, counter, true, log)
	gate := &quota.Gate{Store: counter, Now: clock, Caller: func(r *http.Request) quota.Caller {
		c := auth.CallerFrom(r.Context())
		return quota.Caller{Subject: c.Subject, Limit: c.Plan.Terms().DailyQuota, Tier: c.Plan.Terms().Tier}
	}, Record: func(r *http.Request, day quota.Day, n int) {
		c := auth.CallerFrom(r.Context())
		s.ledger.Add(ledger.Call{Day: day, Subject: c.Subject, Key: c.Key, Endpoint: "/api/v1/tools"}, n)
	}}
	s.handler = keyring.Identify(gate.Count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	return s
}

// signUp signs in with an address, and returns its account with a new key.
func (s *service) signUp(email string) (*ent.Account, string) {
	s.t.Helper()
	challenge := check.Try(s.accounts.StartSignIn(s.t.Context(), email, auth.Sender{Network: email})).OK(s.t)
	found := check.Try(s.accounts.ConfirmationByLink(s.t.Context(), challenge.Link)).OK(s.t)
	check.Try(s.accounts.SignIn(s.t.Context(), found, "", "en")).OK(s.t)
	acc := s.find(email)
	key, _, err := s.accounts.CreateKey(s.t.Context(), acc, "")
	check.OK(s.t, err)
	return acc, key
}

func (s *service) find(email string) *ent.Account {
	s.t.Helper()
	return check.Try(s.accounts.Find(s.t.Context(), email)).OK(s.t)
}

func (s *service) changeEmail(acc *ent.Account, email string) {
	s.t.Helper()
	challenge := check.Try(s.accounts.StartEmailChange(s.t.Context(), acc, email, auth.Sender{Network: email})).OK(s.t)
	found := check.Try(s.accounts.ConfirmationByLink(s.t.Context(), challenge.Link)).OK(s.t)
	check.OK(s.t, s.accounts.ChangeEmail(s.t.Context(), found, acc, ""))
}

func (s *service) delete(acc *ent.Account) {
	s.t.Helper()
	check.OK(s.t, s.accounts.Delete(s.t.Context(), acc))
}

func (s *service) request(key string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/tools", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// spend sends requests and saves their counts.
func (s *service) spend(key string, n int) {
	s.t.Helper()
	for i := range n {
		check.Must(s.t, s.request(key).Code, http.StatusOK, "request %d: status", i+1)
	}
	s.ledger.Write(s.t.Context())
}

// wantLeft checks how many requests a key has left by using them up.
func (s *service) wantLeft(key string, want int) {
	s.t.Helper()
	for left := want - 1; left >= 0; left-- {
		w := s.request(key)
		if w.Code != http.StatusOK || left == want-1 && w.Header().Get("X-Ratelimit-Remaining") != strconv.Itoa(left) {
			s.t.Fatalf("got status %d with %s left, want 200 with %d", w.Code, w.Header().Get("X-Ratelimit-Remaining"), left)
		}
	}
	w := s.request(key)
	check.Equal(s.t, w.Code, http.StatusTooManyRequests, "after %d requests, headers %v", want, w.Header())
	check.Equal(s.t, w.Header().Get("X-Ratelimit-Remaining"), "0", "after %d requests, headers %v", want, w.Header())
	check.True(s.t, w.Header().Get("Retry-After") != "", "after %d requests: got status %d, headers %v, want 429", want, w.Code, w.Header())
	check.Contains(s.t, w.Body.String(), "1000", "want the quota of the plan")
	s.ledger.Write(s.t.Context())
}

func eachService(t *testing.T, test func(t *testing.T, s *service)) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) { test(t, newService(t, db)) })
}

// Counts are saved with a delay, when the account may already be deleted.
func TestSpentQuotaOutlivesAccount(t *testing.T) {
	eachService(t, func(t *testing.T, s *service) {
		acc, key := s.signUp("ana@example.com")
		s.spend(key, 500)
		for range 300 {
			s.request(key)
		}
		s.delete(acc)
		s.ledger.Write(t.Context())
		acc, key = s.signUp(" ANA@Example.com")
		s.wantLeft(key, daily-800)
		days, err := s.accounts.Usage(t.Context(), acc, 1)
		check.True(t, err == nil && len(days) == 1 && days[0] == (auth.DayUsage{Day: "2026-11-15", Requests: daily}), "got usage %v, %v, want %d requests", days, err, daily)
		_, other := s.signUp("ben@example.com")
		s.wantLeft(other, daily)
		s.now = s.now.Add(24 * time.Hour)
		s.wantLeft(key, daily)
	})
}

// Whatever the order of sign-ups, changes of address and deletions, an account counts under
// the first subject of the address that it signed up with which no other account has.
func TestSubjects(t *testing.T) {
	eachService(t, func(t *testing.T, s *service) {
		type place struct { // what a subject stands for
			address string
			number  int // of the subjects of this address
		}
		places := map[quota.Subject]place{}
		accounts := map[string]place{} // by their current address
		random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
		addresses := []string{"ana@example.com", "ben@example.com", "zoe@example.com"}
		for range 150 {
			s.now = s.now.Add(24 * time.Hour) // there is a limit on emails
			from, to := addresses[random.IntN(3)], addresses[random.IntN(3)]
			has, exists := accounts[from]
			_, taken := accounts[to]
			switch step := random.IntN(3); {
			case step == 0 && !exists:
				acc := check.Try(s.accounts.Create(t.Context(), from, auth.Developer)).OK(t)
				has = place{address: from}
				for slices.Contains(slices.Collect(maps.Values(accounts)), has) {
					has.number++
				}
				if known, found := places[auth.Subject(acc)]; found {
					check.Must(t, known, has)
				}
				places[auth.Subject(acc)], accounts[from] = has, has
			case step == 1 && exists && !taken:
				s.changeEmail(s.find(from), to)
				delete(accounts, from)
				accounts[to] = has
			case step == 2 && exists:
				s.delete(s.find(from))
				delete(accounts, from)
			}
			for address, want := range accounts {
				check.Must(t, places[auth.Subject(s.find(address))], want, address)
			}
		}
		numbers := map[place]bool{}
		for _, p := range places {
			numbers[p] = true
		}
		check.Equal(t, len(numbers), len(places), "places: want one subject for each")
	})
}

// The count of a deleted account remains until the end of the day, and its earlier usage is
// deleted at once.
func TestUsageOfDeletedAccount(t *testing.T) {
	eachService(t, func(t *testing.T, s *service) {
		acc, key := s.signUp("ana@example.com")
		s.spend(key, 3)
		s.now = s.now.Add(24 * time.Hour)
		s.spend(key, 5)
		s.delete(acc)
		row := s.store.Write.Usage.Query().OnlyX(t.Context())
		check.Equal(t, row.Day, "2026-11-16")
		check.Equal(t, row.Requests, 5)
		check.Equal(t, row.Subject, *acc.Subject)
		for days, want := range []int{1, 0} {
			check.OK(t, ledger.Tidy(t.Context(), s.store, quota.DayOf(s.now)+quota.Day(days)))
			check.Equal(t, s.store.Write.Usage.Query().CountX(t.Context()), want, "%d days later: rows", days)
		}
	})
}
