package auth

import (
	"context"
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
	keyring.wait = 20 * time.Second
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
		if err := accounts.RevokeOf(t.Context(), acc, keys[0].ID); err != nil {
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
		if err := accounts.RevokeOf(t.Context(), ben, key.ID); err == nil {
			t.Error("another account's key was revoked")
		}
		if err := accounts.RevokeOf(t.Context(), ana, key.ID); err != nil {
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
			if err := NewAccounts(s).RevokeOf(t.Context(), ana, id.ID); err != nil {
				t.Fatal(err)
			}
		}
		pass(trustedFor)
		if answer := tried(keyring, keys[0]); answer != "" {
			t.Errorf("it waited: %s", answer)
		}
		wait.Until(t, "the key is looked up again", func() bool { return tried(keyring, keys[0]) != "" })
		pass(stillTrusted - trustedFor)
		if answer := tried(keyring, keys[1]); !strings.Contains(answer, "revoked") {
			t.Errorf("after %v: %q", stillTrusted, answer)
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
