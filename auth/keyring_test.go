package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// tried is what a keyring answers to a key: "" if it is let in.
func tried(k *Keyring, key string) string {
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+key)
	answer := httptest.NewRecorder()
	k.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(answer, request)
	if answer.Code == http.StatusOK {
		return ""
	}
	return answer.Body.String()
}

// made is an account with keys, oldest first.
func made(t *testing.T, s *store.Store, email string, plan Plan, keys int) (*ent.Account, []string) {
	t.Helper()
	accounts := NewAccounts(s)
	acc, err := accounts.Create(t.Context(), email, plan)
	if err != nil {
		t.Fatal(err)
	}
	// Keys that differ by little, and by nothing: the order must hold.
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var texts []string
	for i := range keys {
		accounts.now = func() time.Time { return then.Add(time.Duration(i/2) * 250 * time.Millisecond) }
		text, _, err := accounts.CreateKey(t.Context(), acc, fmt.Sprint("key ", i))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return acc, texts
}

// newKeyring has the patience that a busy machine may need.
func newKeyring(s *store.Store) *Keyring {
	keyring := NewKeyring(s, slog.New(slog.DiscardHandler))
	keyring.timeout = 20 * time.Second
	return keyring
}

// What the page shows as suspended is what the keyring refuses.
func TestSuspendedKeys(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		acc, texts := made(t, s, "ana@example.com", Pro, 8)
		accounts := NewAccounts(s)
		agree := func(plan Plan, want int) {
			t.Helper()
			if err := accounts.SetPlan(t.Context(), acc, plan); err != nil {
				t.Fatal(err)
			}
			keys, err := accounts.Keys(t.Context(), acc)
			if err != nil {
				t.Fatal(err)
			}
			suspended, keyring := Suspended(plan, keys), newKeyring(s)
			if len(suspended) != want {
				t.Errorf("%s: %d are suspended, not %d", plan, len(suspended), want)
			}
			for _, text := range texts {
				key, _ := ParseKey(text)
				answer := tried(keyring, text)
				if refused := strings.Contains(answer, "suspended"); refused != suspended[key.ID] {
					t.Errorf("%s: %s is shown as suspended: %v, and answered %q", plan, key, suspended[key.ID], answer)
				}
			}
		}
		agree(Pro, 0)
		agree(Developer, 5)
		keys, _ := accounts.Keys(t.Context(), acc)
		if err := accounts.RevokeOwned(t.Context(), acc, keys[0].ID); err != nil {
			t.Fatal(err)
		}
		agree(Developer, 4) // the next one moves up
		agree(Pro, 0)
	})
}

func TestRevokedAndForgottenKeys(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := made(t, s, "ana@example.com", Developer, 2)
		ben, _ := made(t, s, "ben@example.com", Developer, 0)
		accounts, keyring := NewAccounts(s), newKeyring(s)
		keyring.now = func() time.Time { return time.Unix(1_800_000_000, 0) } // what is known stays known
		key, _ := ParseKey(keys[0])
		if answer := tried(keyring, keys[0]); answer != "" {
			t.Fatal(answer)
		}
		if err := accounts.RevokeOwned(t.Context(), ben, key.ID); err == nil {
			t.Error("another account's key was revoked")
		}
		if err := accounts.RevokeOwned(t.Context(), ana, key.ID); err != nil {
			t.Fatal(err)
		}
		if answer := tried(keyring, keys[0]); answer != "" {
			t.Fatalf("asked anew without a reason: %s", answer)
		}
		keyring.Forget(key.ID, "one that nobody has")
		if answer := tried(keyring, keys[0]); !strings.Contains(answer, "revoked") {
			t.Errorf("after it was revoked: %q", answer)
		}
		if answer := tried(keyring, keys[1]); answer != "" {
			t.Errorf("the other: %q", answer)
		}
	})
}

func TestDeletedAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := made(t, s, "ana@example.com", Developer, 2)
		ben, benKeys := made(t, s, "ben@example.com", Developer, 1)
		a := newAsking(t, s)
		a.time = time.Now()
		session, benSession := signedIn(a, "ana@example.com"), signedIn(a, "ben@example.com")
		for _, acc := range []*ent.Account{ana, ben} {
			s.Write.Usage.Create().SetAccountID(acc.ID).SetDay("2026-03-01").SetRequests(7).ExecX(t.Context())
			s.Write.Customer.Create().SetID("cus_" + acc.Email).SetAccountID(acc.ID).SetEmail(acc.Email).SetStatus("canceled").ExecX(t.Context())
		}
		accounts, keyring, sessions := NewAccounts(s), newKeyring(s), NewSessions(s)
		if err := accounts.Delete(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if answer := tried(keyring, key); !strings.Contains(answer, "unknown") {
				t.Errorf("its key: %q", answer)
			}
		}
		if whose(t, sessions, session) != "" {
			t.Error("its session goes on")
		}
		if row := s.Write.Customer.GetX(t.Context(), "cus_ana@example.com"); row.AccountID != nil || row.Email != "" {
			t.Errorf("billing keeps %v", row)
		}
		if tried(keyring, benKeys[0]) != "" || whose(t, sessions, benSession) == "" {
			t.Error("another account's key or session ended")
		}
		if row := s.Write.Customer.GetX(t.Context(), "cus_ben@example.com"); row.AccountID == nil {
			t.Error("another account's customer is nobody's")
		}
		if n := s.Write.Usage.Query().CountX(t.Context()); n != 1 {
			t.Errorf("usage of %d accounts", n)
		}
		if _, err := accounts.Find(t.Context(), "ana@example.com"); err == nil {
			t.Error("it is still there")
		}
		if err := accounts.Delete(t.Context(), ana); err != nil {
			t.Errorf("twice: %v", err)
		}
		if _, _, err := accounts.CreateKey(t.Context(), ana, "late"); err == nil {
			t.Error("a key for nobody")
		}
	})
}

// Who uses a key all the time never waits for it to be asked anew, and a
// revoked one is refused within 2 seconds all the same.
func TestAskedAnewMeanwhile(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := made(t, s, "ana@example.com", Developer, 2)
		keyring := newKeyring(s)
		var now atomic.Int64
		keyring.now = func() time.Time { return time.Unix(0, now.Load()) }
		pass := func(d time.Duration) { now.Add(int64(d)) }
		pass(time.Hour)
		for _, key := range keys {
			if answer := tried(keyring, key); answer != "" {
				t.Fatal(answer)
			}
			id, _ := ParseKey(key)
			if err := NewAccounts(s).RevokeOwned(t.Context(), ana, id.ID); err != nil {
				t.Fatal(err)
			}
		}
		pass(freshFor)
		if answer := tried(keyring, keys[0]); answer != "" {
			t.Errorf("it waited: %s", answer)
		}
		wait.Until(t, "the key is looked up again", func() bool { return tried(keyring, keys[0]) != "" })
		pass(staleFor - freshFor)
		if answer := tried(keyring, keys[1]); !strings.Contains(answer, "revoked") {
			t.Errorf("after %v: %q", staleFor, answer)
		}
	})
}

// An account is deleted between the two statements of one look.
func TestDeletedWhileLookedUp(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := made(t, s, "ana@example.com", Developer, 1)
		var deleting sync.Once
		s.Keys.Account.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				deleting.Do(func() {
					if err := NewAccounts(s).Delete(context.WithoutCancel(ctx), ana); err != nil {
						t.Error(err)
					}
				})
				return next.Query(ctx, q)
			})
		}))
		if answer := tried(newKeyring(s), keys[0]); !strings.Contains(answer, "The API key is unknown.") {
			t.Error(answer)
		}
	})
}

// A mistake of ours in a look costs an answer, and not the server.
func TestPanicWhileLookedUp(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	_, keys := made(t, s, "ana@example.com", Developer, 1)
	s.Keys.APIKey.Intercept(ent.InterceptFunc(func(ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(context.Context, ent.Query) (ent.Value, error) { panic("a mistake") })
	}))
	if answer := tried(newKeyring(s), keys[0]); !strings.Contains(answer, "Keys cannot be checked at the moment.") {
		t.Error(answer)
	}
}

// Long questions, which take all that readers have, keep no revoked key alive.
func TestRevokedWhileReadersAreBusy(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		_, keys := made(t, s, "ana@example.com", Pro, 1)
		keyring := newKeyring(s)
		if answer := tried(keyring, keys[0]); answer != "" {
			t.Fatal(answer)
		}
		readers := s.Pools()["reader"]
		for range readers.Stats().MaxOpenConnections {
			busy, err := readers.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer busy.Close()
		}
		if err := NewAccounts(s).Revoke(t.Context(), keys[0]); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the revoked key is refused", func() bool { return tried(keyring, keys[0]) != "" })
	})
}

// lookups opens a store that counts the look-ups of keys.
func lookups(t *testing.T, cfg store.Config) (*store.Store, *atomic.Int64) {
	t.Helper()
	var count atomic.Int64
	cfg.Watch = func(_ context.Context, _, text string) func(error) {
		if strings.Contains(text, "api_keys") {
			count.Add(1)
		}
		return func(error) {}
	}
	return testkit.Open(t, cfg), &count
}

// clock is a clock that only moves when a test moves it.
type clock struct{ nanoseconds atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(1_800_000_000, c.nanoseconds.Load()) }
func (c *clock) pass(d time.Duration) { c.nanoseconds.Add(int64(d)) }

func TestUnknownKeyIsLookedUpOncePerSecond(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s, count := lookups(t, cfg)
		keyring, at := newKeyring(s), &clock{}
		keyring.now = at.now
		key := NewKey()
		try := func(times int, want int64) {
			t.Helper()
			count.Store(0)
			for range times {
				if got := tried(keyring, key.Text()); !strings.Contains(got, "The API key is unknown.") {
					t.Fatalf("got %q, want an unknown key", got)
				}
			}
			if got := count.Load(); got != want {
				t.Errorf("got %d look-ups, want %d", got, want)
			}
		}
		try(50, 1)
		at.pass(freshFor - time.Nanosecond)
		try(50, 0)
		at.pass(time.Nanosecond)
		try(50, 1)
		at.pass(-time.Hour) // a clock that was set back must not make it last for an hour
		try(50, 1)
		keyring.Forget(key.ID)
		try(50, 1)
	})
}

func TestUnknownKeysEvictNoKnownKey(t *testing.T) {
	s, count := lookups(t, testkit.SQLite(t))
	_, keys := made(t, s, "ana@example.com", Developer, 1)
	keyring, at := newKeyring(s), &clock{}
	keyring.now = at.now
	if got := tried(keyring, keys[0]); got != "" {
		t.Fatalf("got %q, want to be let in", got)
	}
	for range maxKeys + 100 {
		if _, err := keyring.find(t.Context(), readText(rand.Reader, idLength)); err != nil {
			t.Fatal(err)
		}
	}
	if got := keyring.keys.Len(); got != 1 {
		t.Errorf("got %d known keys, want 1", got)
	}
	if got := keyring.unknown.Len(); got != maxUnknown {
		t.Errorf("got %d unknown ids, want %d", got, maxUnknown)
	}
	count.Store(0)
	if got := tried(keyring, keys[0]); got != "" || count.Load() != 0 {
		t.Errorf("got %q after %d look-ups, want to be let in without any", got, count.Load())
	}
}

func TestMalformedKeysAreNotLookedUp(t *testing.T) {
	s, count := lookups(t, testkit.SQLite(t))
	keyring := newKeyring(s)
	whole := NewKey().Text()
	for _, key := range []string{"", "x", "pal_", whole[:len(whole)-1], whole + "0", strings.ToLower(whole), "PAL_" + whole[4:], whole[:20] + "-" + whole[21:], strings.Repeat("pal_", 10_000)} {
		if got := tried(keyring, key); !strings.Contains(got, "malformed") {
			t.Errorf("%.60q: got %q, want it to be malformed", key, got)
		}
	}
	if got := count.Load(); got != 0 {
		t.Errorf("got %d look-ups, want none", got)
	}
}

func TestRecheck(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s, count := lookups(t, cfg)
		acc, keys := made(t, s, "ana@example.com", Pro, 2)
		accounts, keyring, at := NewAccounts(s), newKeyring(s), &clock{}
		keyring.now = at.now
		callers := make([]Caller, 2)
		for i, text := range keys {
			key, _ := ParseKey(text)
			callers[i] = Caller{Plan: Pro, Account: acc.ID, Key: key.ID}
		}
		check := func(i int, want Plan, refused string) {
			t.Helper()
			got, err := keyring.Recheck(t.Context(), callers[i])
			if refused == "" && (err != nil || got != Caller{Plan: want, Account: acc.ID, Key: callers[i].Key}) {
				t.Errorf("got %+v, %v, want plan %s", got, err, want)
			}
			var p *problem.Problem
			if refused != "" && (!errors.As(err, &p) || p.Code != problem.Unauthenticated || !strings.Contains(p.Message, refused)) {
				t.Errorf("got %+v, %v, want %s", got, err, refused)
			}
		}
		check(0, Pro, "")
		count.Store(0)
		check(0, Pro, "")
		if got := count.Load(); got != 0 {
			t.Errorf("got %d look-ups within a second, want none", got)
		}
		if err := accounts.SetPlan(t.Context(), acc, Developer); err != nil {
			t.Fatal(err)
		}
		at.pass(freshFor)
		check(0, Developer, "")
		if err := accounts.Revoke(t.Context(), keys[0]); err != nil {
			t.Fatal(err)
		}
		at.pass(freshFor)
		check(0, "", "revoked")
		check(1, Developer, "")
		if err := accounts.Delete(t.Context(), acc); err != nil {
			t.Fatal(err)
		}
		at.pass(freshFor)
		check(1, "", "unknown")

		anonymous := Caller{Plan: Anonymous}
		if got, err := keyring.Recheck(t.Context(), anonymous); err != nil || got != anonymous {
			t.Errorf("got %+v, %v, want the anonymous caller", got, err)
		}
		// Without a database, callers remain what they were.
		keyring.Forget(callers[0].Key)
		_ = s.Close()
		check(0, Pro, "")
	})
}
