package auth

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

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
		at.pass(trustedFor - time.Nanosecond)
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
	for range keptKeys + 100 {
		if _, err := keyring.find(t.Context(), randomText(idLength)); err != nil {
			t.Fatal(err)
		}
	}
	if got := keyring.known.Len(); got != 1 {
		t.Errorf("got %d known keys, want 1", got)
	}
	if got := keyring.unknown.Len(); got != keptUnknown {
		t.Errorf("got %d unknown ids, want %d", got, keptUnknown)
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
		at.pass(trustedFor)
		check(0, Developer, "")
		if err := accounts.Revoke(t.Context(), keys[0]); err != nil {
			t.Fatal(err)
		}
		at.pass(trustedFor)
		check(0, "", "revoked")
		check(1, Developer, "")
		if err := accounts.Delete(t.Context(), acc); err != nil {
			t.Fatal(err)
		}
		at.pass(trustedFor)
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
