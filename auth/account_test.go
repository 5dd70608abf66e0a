package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/ent/migrate"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestAddresses(t *testing.T) {
	for given, want := range map[string]string{
		"ana@example.com":         "ana@example.com",
		" Ana@Example.COM ":       "ana@example.com",
		"ana+list@example.com":    "ana+list@example.com",
		"ana@sub.example.com":     "ana@sub.example.com",
		"élodie@exemple.fr":       "élodie@exemple.fr",
		"":                        "",
		"ana":                     "",
		"ana@":                    "",
		"ana@host":                "",
		"@example.com":            "",
		"Ana <ana@example.com>":   "",
		"<ana@example.com>":       "",
		"ana@example.com, b@c.de": "",
		"ana@example.com\nBcc: x": "",
		"ana@exa\x00mple.com":     "",
		"ana@example.":            "",
		strings.Repeat("a", 300) + "@example.com": "",
	} {
		if got, err := NormalizeEmail(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%.40q: %q, %v", given, got, err)
		}
	}
}

// However an address is written, it is one account.
func TestSpellingsOfOneAddress(t *testing.T) {
	for _, spellings := range [][]string{
		{"ana@example.com", "ANA@EXAMPLE.COM", "\tAna@Example.com "},
		{"\u00e9lodie@exemple.fr", "e\u0301lodie@exemple.fr", "\u00c9lodie@exemple.fr", "E\u0301LODIE@EXEMPLE.FR"},
		{"ana@m\u00fcnchen.de", "ana@mu\u0308nchen.de", "ana@M\u00dcNCHEN.DE", "ana@xn--mnchen-3ya.de", "ana@XN--MNCHEN-3YA.DE"},
		{"ana@example.com", "ana@\uff45xample.com", "ana@example\u3002com"}, // as a Japanese keyboard writes
	} {
		want, err := NormalizeEmail(spellings[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, spelling := range append(spellings, want) {
			if got, err := NormalizeEmail(spelling); got != want || err != nil {
				t.Errorf("%q is %q, not %q: %v", spelling, got, want, err)
			}
		}
	}
	// The root's dot is nobody's habit: it is refused, and so no second account.
	for _, wrong := range []string{"ana@example.com.", "ana@example.com..", "ana@example.com\u3002", "ana@example.com\uff0e", "ana@example.com\uff61", "ana@host\u3002", "ana@.example.com", "a\xff@example.com", "ana@exa\xffmple.com",
		"ana@example.com\r\nBcc: ben@example.com", "ana\r@example.com", "ana@[127.0.0.1]", "ana@xn--a.com", `"a b"@example.com`, "ana@exa mple.com",
		"\u202eana@example.com\x00"} {
		if got, err := NormalizeEmail(wrong); err == nil {
			t.Errorf("%q is taken as %q", wrong, got)
		}
	}
}

// The number of keys holds when ten are made at once.
func TestKeyLimit(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		for plan, most := range map[Plan]int64{Developer: 3, Pro: 10} {
			account, err := accounts.Create(t.Context(), string(plan)+"@example.com", plan)
			if err != nil {
				t.Fatal(err)
			}
			var made atomic.Int64
			var all sync.WaitGroup
			for range 15 {
				all.Go(func() {
					text, _, err := accounts.CreateKey(t.Context(), account, "one of many")
					switch {
					case err == nil && text != "":
						made.Add(1)
					case !strings.Contains(err.Error(), "revoke one first"):
						t.Error(err)
					}
				})
			}
			all.Wait()
			if made.Load() != most {
				t.Errorf("%s: %d keys, not %d", plan, made.Load(), most)
			}
			keys, err := accounts.Keys(t.Context(), account)
			if err != nil || len(keys) != int(most) {
				t.Fatalf("%d keys, %v", len(keys), err)
			}
			if err := accounts.Revoke(t.Context(), keys[0].ID); err != nil {
				t.Fatal(err)
			}
			if err := accounts.Revoke(t.Context(), keys[0].ID); err == nil {
				t.Error("revoked twice")
			}
			if _, _, err := accounts.CreateKey(t.Context(), account, ""); err != nil {
				t.Errorf("after one was revoked: %v", err)
			}
		}
		if _, err := accounts.Create(t.Context(), " DEVELOPER@example.com", Pro); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a second account of one address: %v", err)
		}
		if _, err := accounts.Find(t.Context(), "nobody@example.com"); err == nil || strings.Contains(err.Error(), "ent:") {
			t.Errorf("nobody: %v", err)
		}
	})
}

// What is stored opens nothing.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		account, err := accounts.Create(t.Context(), "ana@example.com", Developer)
		if err != nil {
			t.Fatal(err)
		}
		text, row, err := accounts.CreateKey(context.Background(), account, "x")
		if err != nil {
			t.Fatal(err)
		}
		if secret := text[16:48]; strings.Contains(string(row.SecretHash), secret) || strings.Contains(row.String(), secret) || len(row.SecretHash) != 32 {
			t.Errorf("stored: %s", row)
		}
		for _, name := range []string{strings.Repeat("n", 81), "two\nlines", "nul\x00"} {
			if _, _, err := accounts.CreateKey(t.Context(), account, name); err == nil {
				t.Errorf("%q is a name", name)
			}
		}
	})
}

// Keys that are revoked at once must not fill the database.
func TestKeysInADay(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		accounts.now = func() time.Time { return now }
		acc, err := accounts.Create(t.Context(), "ana@example.com", Developer)
		if err != nil {
			t.Fatal(err)
		}
		makeAndRevoke := func() error {
			_, key, err := accounts.CreateKey(t.Context(), acc, "")
			if err == nil {
				err = accounts.RevokeOwned(t.Context(), acc, key.ID)
			}
			return err
		}
		for i := range maxKeysPerDay {
			if err := makeAndRevoke(); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
		}
		if err := makeAndRevoke(); err == nil || !strings.Contains(err.Error(), "30 keys were made within 24 hours") {
			t.Errorf("one more: %v", err)
		}
		if keys, err := accounts.UnrevokedKeys(t.Context(), acc); err != nil || len(keys) != 0 {
			t.Errorf("%d keys are not revoked, %v", len(keys), err)
		}
		if had, err := accounts.HasRevokedKeys(t.Context(), acc); err != nil || !had {
			t.Errorf("had keys: %v, %v", had, err)
		}
		now = now.Add(24 * time.Hour)
		if _, _, err := accounts.CreateKey(t.Context(), acc, "stays"); err != nil {
			t.Fatalf("a day later: %v", err)
		}

		tidy(t, s, now.Add(revokedKeyRetention-25*time.Hour))
		if keys, _ := accounts.Keys(t.Context(), acc); len(keys) != maxKeysPerDay+1 {
			t.Errorf("%d keys are kept for 90 days", len(keys))
		}
		tidy(t, s, now.Add(revokedKeyRetention))
		if keys, _ := accounts.Keys(t.Context(), acc); len(keys) != 1 || keys[0].Name != "stays" {
			t.Errorf("%d keys are kept after 90 days", len(keys))
		}
	})
}

// What is kept of who left has no address.
func TestAddressesOfWhoLeft(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		ana := a.account("ana@example.com")
		s.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).ExecX(t.Context())
		s.Write.Customer.Create().SetID("cus_0").SetEmail("left-before@example.com").ExecX(t.Context())
		if err := NewAccounts(s).Delete(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		if email := s.Write.Customer.GetX(t.Context(), "cus_1").Email; email != "" {
			t.Errorf("%s is kept", email)
		}
		tidy(t, s, a.time.Add(2*confirmationRetention))
		if stored := everythingStored(t, s); strings.Contains(stored, "@example.com") {
			t.Errorf("an address is kept:\n%s", stored)
		}
	})
}

// Nobody's reading waits for another who writes.
func TestReadingBesideAWriter(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions, accounts := NewSessions(s), NewAccounts(s)
		sessions.now = a.now
		token := signedIn(a, "ana@example.com")
		asked := a.signIn("ana@example.com")
		writing, err := s.Write.Tx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writing.Rollback() }()
		writing.Confirmation.Update().Where(confirmation.Email("nobody")).SetTries(0).ExecX(t.Context())
		done := make(chan error, 1)
		go func() {
			acc, err := sessions.Find(t.Context(), token)
			if err != nil {
				done <- err
				return
			}
			_, a1 := sessions.List(t.Context(), acc)
			_, a2 := accounts.Find(t.Context(), acc.Email)
			_, a3 := accounts.List(t.Context())
			_, a4 := accounts.Keys(t.Context(), acc)
			_, a5 := accounts.HasRevokedKeys(t.Context(), acc)
			_, a6 := accounts.Usage(t.Context(), acc, 3)
			_, a7 := a.FindByLink(t.Context(), asked.Link)
			_, a8 := a.FindByBrowser(t.Context(), signingIn, asked.Browser)
			_, a9 := a.List(t.Context(), acc)
			done <- errors.Join(a1, a2, a3, a4, a5, a6, a7, a8, a9)
		}()
		if err := wait.Receive(t, "reading beside a writer", done); err != nil {
			t.Error(err)
		}
	})
}

// An account that is opened while another one of its address is being deleted
// still carries its usage.
func TestSigningUpDuringDeletion(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		accounts := NewAccounts(s)
		accounts.now = a.now
		acc, err := accounts.Create(t.Context(), "ana@example.com", Developer)
		if err != nil {
			t.Fatal(err)
		}
		s.Write.Usage.Create().SetAccountID(acc.ID).SetDay(dayOf(a.time)).SetRequests(700).ExecX(t.Context())
		created := make(chan *ent.Account, 1)
		err = s.Update(t.Context(), func(tx *ent.Tx) error { // as Delete does it
			if err := storeFormerUsage(t.Context(), tx, acc, dayOf(a.time)); err != nil {
				return err
			}
			tx.Usage.Delete().Where(usage.AccountID(acc.ID)).ExecX(t.Context())
			tx.Account.DeleteOne(acc).ExecX(t.Context())
			go func() {
				created <- func() *ent.Account {
					acc, err := accounts.Create(t.Context(), "ana@example.com", Developer)
					if err != nil {
						t.Error(err)
					}
					return acc
				}()
			}()
			if s.Dialect() == "postgres" {
				waitForLock(t, s)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-created; got == nil || got.CarriedRequests != 700 {
			t.Errorf("got %v, want an account that carries 700 requests", got)
		}
	})
}

// waitForLock waits until a connection to the test's database waits for a lock.
func waitForLock(t *testing.T, s *store.Store) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		rows, err := s.Keys.QueryContext(t.Context(), "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err != nil {
			t.Fatal(err)
		}
		waits := rows.Next()
		_ = rows.Close()
		if waits {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("got no connection that waits for a lock, want one")
		}
	}
}

// everythingStored is every value of every table, as text.
func everythingStored(t *testing.T, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	for _, table := range migrate.Tables {
		rows, err := s.Write.QueryContext(t.Context(), "SELECT * FROM "+table.Name)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for _, value := range values {
				if text, is := value.([]byte); is {
					value = string(text)
				}
				fmt.Fprintln(&all, value)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
