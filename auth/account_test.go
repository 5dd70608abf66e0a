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
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/drift"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestNormalizeEmail(t *testing.T) {
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
		got, err := NormalizeEmail(given)
		check.Equal(t, got, want, "%.40q", given)
		check.Equal(t, err == nil, want != "", "%.40q", given)
	}
}

// All spellings of an address identify the same account.
func TestNormalizeEmailSpellings(t *testing.T) {
	for _, spellings := range [][]string{
		{"ana@example.com", "ANA@EXAMPLE.COM", "\tAna@Example.com "},
		{"\u00e9lodie@exemple.fr", "e\u0301lodie@exemple.fr", "\u00c9lodie@exemple.fr", "E\u0301LODIE@EXEMPLE.FR"},
		{"ana@m\u00fcnchen.de", "ana@mu\u0308nchen.de", "ana@M\u00dcNCHEN.DE", "ana@xn--mnchen-3ya.de", "ana@XN--MNCHEN-3YA.DE"},
		{"ana@example.com", "ana@\uff45xample.com", "ana@example\u3002com"}, // full-width characters
	} {
		want := check.Try(NormalizeEmail(spellings[0])).OK(t)
		for _, spelling := range append(spellings, want) {
			got, err := NormalizeEmail(spelling)
			check.Equal(t, got, want, spelling)
			check.Equal(t, err, nil, spelling)
		}
	}
	// A trailing dot is rejected, because it would allow a second account.
	for _, wrong := range []string{"ana@example.com.", "ana@example.com..", "ana@example.com\u3002", "ana@example.com\uff0e", "ana@example.com\uff61", "ana@host\u3002", "ana@.example.com", "a\xff@example.com", "ana@exa\xffmple.com",
		"ana@example.com\r\nBcc: ben@example.com", "ana\r@example.com", "ana@[127.0.0.1]", "ana@xn--a.com", `"a b"@example.com`, "ana@exa mple.com",
		"\u202eana@example.com\x00"} {
		got, err := NormalizeEmail(wrong)
		check.Fails(t, err, "%q: %q", wrong, got)
	}
}

// The limit also holds for keys that are created concurrently.
func TestKeyLimit(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		for plan, most := range map[Plan]int64{Developer: 3, Pro: 10} {
			account := check.Try(accounts.Create(t.Context(), string(plan)+"@example.com", plan)).OK(t)
			var created atomic.Int64
			var all sync.WaitGroup
			for range 15 {
				all.Go(func() {
					text, _, err := accounts.CreateKey(t.Context(), account, "one of many")
					switch {
					case err == nil && text != "":
						created.Add(1)
					case !strings.Contains(err.Error(), "Revoke one first"):
						t.Error(err)
					}
				})
			}
			all.Wait()
			check.Equal(t, created.Load(), most, "%s: keys", plan)
			keys := check.Try(accounts.Keys(t.Context(), account)).OK(t)
			check.Must(t, len(keys), int(most))
			check.OK(t, accounts.Revoke(t.Context(), keys[0].ID))
			check.Fails(t, accounts.Revoke(t.Context(), keys[0].ID), "revoking a key twice")
			_, _, err := accounts.CreateKey(t.Context(), account, "")
			check.Equal(t, err, nil, "creating a key after revoking one")
		}
		_, err := accounts.Create(t.Context(), " DEVELOPER@example.com", Pro)
		check.Contains(t, fmt.Sprint(err), "already", "second account for an address")
		if _, err := accounts.Find(t.Context(), "nobody@example.com"); err == nil || strings.Contains(err.Error(), "ent:") {
			t.Errorf("unknown address: got %v, want an error that does not come from ent", err)
		}
	})
}

// A key cannot be recovered from the database.
func TestSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		account := check.Try(accounts.Create(t.Context(), "ana@example.com", Developer)).OK(t)
		text, row, err := accounts.CreateKey(context.Background(), account, "x")
		check.OK(t, err)
		secret := text[16:48]
		check.Lacks(t, string(row.SecretHash), secret)
		check.Lacks(t, row.String(), secret)
		check.Equal(t, len(row.SecretHash), 32)
		for _, name := range []string{strings.Repeat("n", 81), "two\nlines", "nul\x00"} {
			_, _, err := accounts.CreateKey(t.Context(), account, name)
			check.Fails(t, err, "name %q", name)
		}
	})
}

// Creating and revoking keys must not fill the database.
func TestMaxKeysPerDay(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		accounts.now = func() time.Time { return now }
		acc := check.Try(accounts.Create(t.Context(), "ana@example.com", Developer)).OK(t)
		createAndRevoke := func() error {
			_, key, err := accounts.CreateKey(t.Context(), acc, "")
			if err == nil {
				err = accounts.RevokeOwned(t.Context(), acc, key.ID)
			}
			return err
		}
		for i := range maxKeysPerDay {
			check.OK(t, createAndRevoke(), "key %d", i)
		}
		if err := createAndRevoke(); err == nil || !strings.Contains(err.Error(), "at most 30 keys within 24 hours") {
			t.Errorf("one more key: got %v, want the daily limit", err)
		}
		keys := check.Try(accounts.Keys(t.Context(), acc)).OK(t)
		check.Equal(t, len(keys), maxKeysPerDay)
		check.Equal(t, len(Unrevoked(keys)), 0)
		now = now.Add(24 * time.Hour)
		_, _, err := accounts.CreateKey(t.Context(), acc, "stays")
		check.OK(t, err, "a day later")

		deleteExpired(t, s, now.Add(revokedKeyRetention-25*time.Hour))
		keys, _ = accounts.Keys(t.Context(), acc)
		check.Equal(t, len(keys), maxKeysPerDay+1, "before 90 days: keys")
		deleteExpired(t, s, now.Add(revokedKeyRetention))
		keys, _ = accounts.Keys(t.Context(), acc)
		check.Must(t, len(keys), 1, "after 90 days")
		check.Equal(t, keys[0].Name, "stays", "after 90 days")
	})
}

// The records of deleted accounts contain no address.
func TestAddressesOfDeletedAccounts(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		ana := a.account("ana@example.com")
		a.store.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).ExecX(t.Context())
		a.store.Write.Customer.Create().SetID("cus_0").SetEmail("left-before@example.com").ExecX(t.Context())
		check.OK(t, a.Delete(t.Context(), ana))
		check.Equal(t, a.store.Write.Customer.GetX(t.Context(), "cus_1").Email, "", "address")
		deleteExpired(t, a.store, a.time.Add(2*confirmationRetention))
		check.Lacks(t, everythingStored(t, a.store), "@example.com", "a stored address")
	})
}

// Reads do not wait for a writer.
func TestReadsDuringWrite(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		token := a.signedIn("ana@example.com")
		challenge := a.signIn("ana@example.com")
		writing := check.Try(a.store.Write.Tx(t.Context())).OK(t)
		defer func() { _ = writing.Rollback() }()
		writing.Confirmation.Update().Where(confirmation.Email("nobody")).SetTries(0).ExecX(t.Context())
		done := make(chan error, 1)
		go func() {
			acc, err := a.SessionAccount(t.Context(), token)
			if err != nil {
				done <- err
				return
			}
			_, a1 := a.Sessions(t.Context(), acc)
			_, a2 := a.Find(t.Context(), acc.Email)
			_, a3 := a.List(t.Context())
			_, a4 := a.Keys(t.Context(), acc)
			_, a5 := a.Usage(t.Context(), acc, 3)
			_, a6 := a.ConfirmationByLink(t.Context(), challenge.Link)
			_, a7 := a.ConfirmationByBrowser(t.Context(), signingIn, challenge.Browser)
			_, a8 := a.Confirmations(t.Context(), acc)
			done <- errors.Join(a1, a2, a3, a4, a5, a6, a7, a8)
		}()
		check.Equal(t, wait.Receive(t, "reads during a write", done), nil)
	})
}

// An account that is created while the previous one of its address is being
// deleted continues with its usage.
func TestSigningUpDuringDeletion(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		acc := check.Try(a.Create(t.Context(), "ana@example.com", Developer)).OK(t)
		created := make(chan *ent.Account, 1)
		err := a.store.Update(t.Context(), func(tx *ent.Tx) error { // like Accounts.Delete
			tx.Account.DeleteOne(acc).ExecX(t.Context())
			go func() {
				created <- func() *ent.Account {
					acc, err := a.Create(t.Context(), "ana@example.com", Developer)
					check.Equal(t, err, nil)
					return acc
				}()
			}()
			if a.store.Dialect() == "postgres" {
				waitForLock(t, a.store)
			}
			return nil
		})
		check.OK(t, err)
		if got := <-created; got == nil || *got.Subject != *acc.Subject {
			t.Errorf("got %v, want the subject %d", got, *acc.Subject)
		}
	})
}

// waitForLock returns once a connection to the test's database waits for a lock.
func waitForLock(t *testing.T, s *store.Store) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		rows := check.Try(s.Keys.QueryContext(t.Context(), "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")).OK(t)
		waits := rows.Next()
		_ = rows.Close()
		if waits {
			return
		}
		check.MustTrue(t, !time.Now().After(deadline), "got no connection waiting for a lock, want one")
	}
}

// everythingStored returns all values of all tables as text.
func everythingStored(t *testing.T, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	for _, table := range drift.Tables() {
		rows := check.Try(s.Write.QueryContext(t.Context(), "SELECT * FROM "+table.Name)).OK(t)
		columns := check.Try(rows.Columns()).OK(t)
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			check.OK(t, rows.Scan(into...))
			for _, value := range values {
				if text, is := value.([]byte); is {
					value = string(text)
				}
				fmt.Fprintln(&all, value)
			}
		}
		check.OK(t, rows.Close())
	}
	return all.String()
}
