package auth

import (
	"context"
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
	"palmares/ent/confirmation"
	"palmares/internal/core/lookup"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/drift"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// tryKey returns the response to a key, or "" if it is accepted.
func tryKey(k *Keyring, key string) string {
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+key)
	response := httptest.NewRecorder()
	k.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(response, request)
	if response.Code == http.StatusOK {
		return ""
	}
	return response.Body.String()
}

// createAccount creates an account with keys, oldest first.
func createAccount(t *testing.T, s *store.Store, email string, plan Plan, keys int) (*ent.Account, []string) {
	t.Helper()
	accounts := NewAccounts(s)
	acc := check.Try(accounts.Create(t.Context(), email, plan)).OK(t)
	// Some keys are created at the same time, and their order must be stable.
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var texts []string
	for i := range keys {
		accounts.now = func() time.Time { return then.Add(time.Duration(i/2) * 250 * time.Millisecond) }
		text, _, err := accounts.CreateKey(t.Context(), acc, fmt.Sprint("key ", i))
		check.OK(t, err)
		texts = append(texts, text)
	}
	return acc, texts
}

// newKeyring returns a keyring whose timeout is long enough for a busy machine.
func newKeyring(s *store.Store) *Keyring {
	keyring := NewKeyring(s, slog.New(slog.DiscardHandler), Rules{})
	keyring.keys.Timeout = 20 * time.Second
	return keyring
}

// The portal and the keyring agree on which keys are suspended.
func TestSuspendedKeys(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		acc, texts := createAccount(t, s, "ana@example.com", Pro, 8)
		accounts := NewAccounts(s)
		agree := func(plan Plan, want int) {
			t.Helper()
			check.OK(t, accounts.SetPlan(t.Context(), acc, plan))
			keys := check.Try(accounts.Keys(t.Context(), acc)).OK(t)
			suspended, keyring := Suspended(plan, keys), newKeyring(s)
			check.Equal(t, len(suspended), want, "%s: suspended keys", plan)
			for _, text := range texts {
				key, _ := ParseKey(text)
				response := tryKey(keyring, text)
				check.Equal(t, strings.Contains(response, "suspended"), suspended[key.ID], "%s: %s: response: %q", plan, key, response)
			}
		}
		agree(Pro, 0)
		agree(Developer, 5)
		keys, _ := accounts.Keys(t.Context(), acc)
		check.OK(t, accounts.RevokeOwned(t.Context(), acc, keys[0].ID))
		agree(Developer, 4) // the next key becomes active
		agree(Pro, 0)
	})
}

func TestForgetAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := createAccount(t, s, "ana@example.com", Developer, 2)
		ben, _ := createAccount(t, s, "ben@example.com", Developer, 0)
		accounts, keyring := NewAccounts(s), newKeyring(s)
		keyring.now = func() time.Time { return time.Unix(1_800_000_000, 0) } // cached keys stay fresh
		key, _ := ParseKey(keys[0])
		check.Must(t, tryKey(keyring, keys[0]), "")
		check.Fails(t, accounts.RevokeOwned(t.Context(), ben, key.ID), "revoking another account's key")
		check.OK(t, accounts.RevokeOwned(t.Context(), ana, key.ID))
		check.Must(t, tryKey(keyring, keys[0]), "", "cached key: want it accepted")
		keyring.ForgetAccount(ana.ID)
		check.Contains(t, tryKey(keyring, keys[0]), "revoked", "revoked key: want it revoked")
		check.Equal(t, tryKey(keyring, keys[1]), "", "other key: want it accepted")
	})
}

func TestDeletedAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := createAccount(t, s, "ana@example.com", Developer, 2)
		ben, benKeys := createAccount(t, s, "ben@example.com", Developer, 1)
		a := newFixture(t, s)
		a.time = time.Now()
		session, benSession := a.signedIn("ana@example.com"), a.signedIn("ben@example.com")
		for _, acc := range []*ent.Account{ana, ben} {
			s.Write.Usage.Create().SetSubject(int64(Subject(acc))).SetDay("2026-03-01").SetKey("").SetEndpoint("").SetRequests(7).ExecX(t.Context())
			s.Write.Customer.Create().SetID("cus_" + acc.Email).SetAccountID(acc.ID).SetEmail(acc.Email).SetStatus("canceled").ExecX(t.Context())
		}
		keyring := newKeyring(s)
		check.OK(t, a.Delete(t.Context(), ana))
		for _, key := range keys {
			check.Contains(t, tryKey(keyring, key), "does not exist", "key of the deleted account: want that it does not exist")
		}
		check.Equal(t, a.emailOf(session), "", "session of the deleted account")
		row := s.Write.Customer.GetX(t.Context(), "cus_ana@example.com")
		check.Equal(t, row.AccountID, nil)
		check.Equal(t, row.Email, "")
		check.Equal(t, tryKey(keyring, benKeys[0]), "", "another account")
		check.True(t, a.emailOf(benSession) != "", "another account: got its key or session ended, want both valid")
		row = s.Write.Customer.GetX(t.Context(), "cus_ben@example.com")
		check.True(t, row.AccountID != nil, "another account: got its customer without account, want it unchanged")
		check.Equal(t, s.Write.Usage.Query().CountX(t.Context()), 1, "usage of accounts")
		check.Try(a.Find(t.Context(), "ana@example.com")).Fails(t)
		check.Equal(t, a.Delete(t.Context(), ana), nil, "deleting again")
		_, _, err := a.CreateKey(t.Context(), ana, "late")
		check.Fails(t, err, "key for a deleted account")
	})
}

// A key is unknown if its account is deleted between the two statements of a
// lookup.
func TestAccountDeletedDuringLookup(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ana, keys := createAccount(t, s, "ana@example.com", Developer, 1)
		var deleting sync.Once
		s.Keys.Account.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				deleting.Do(func() { check.Equal(t, NewAccounts(s).Delete(context.WithoutCancel(ctx), ana), nil) })
				return next.Query(ctx, q)
			})
		}))
		check.Contains(t, tryKey(newKeyring(s), keys[0]), "This API key does not exist. Check the key, or create a new one in your account.", "want an unknown key")
	})
}

// A revoked key is rejected even if all read connections are busy.
func TestRevokedWithBusyReaders(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		_, keys := createAccount(t, s, "ana@example.com", Pro, 1)
		keyring := newKeyring(s)
		check.Must(t, tryKey(keyring, keys[0]), "")
		readers := s.Pools()["reader"]
		for range readers.Stats().MaxOpenConnections {
			busy := check.Try(readers.Conn(t.Context())).OK(t)
			defer busy.Close()
		}
		check.OK(t, NewAccounts(s).Revoke(t.Context(), keys[0]))
		wait.Until(t, "the revoked key is rejected", func() bool { return tryKey(keyring, keys[0]) != "" })
	})
}

// lookups opens a store and counts lookups of keys in it.
func lookups(t *testing.T, cfg store.Config) (*store.Store, *atomic.Int64) {
	t.Helper()
	var count atomic.Int64
	cfg.OnStatement = func(_ context.Context, _, text string) func(error) {
		if strings.Contains(text, "api_keys") {
			count.Add(1)
		}
		return func(error) {}
	}
	return testkit.Open(t, cfg), &count
}

// clock is a clock that only tests move.
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
				got := tryKey(keyring, key.Text())
				check.MustTrue(t, strings.Contains(got, "This API key does not exist. Check the key, or create a new one in your account."), "got %q, want an unknown key", got)
			}
			check.Equal(t, count.Load(), want, "lookups")
		}
		try(50, 1)
		at.pass(lookup.FreshFor - time.Nanosecond)
		try(50, 0)
		at.pass(time.Nanosecond)
		try(50, 1)
		at.pass(-time.Hour) // setting the clock back must not extend the cache time
		try(50, 1)
	})
}

func TestMalformedKeysAreNotLookedUp(t *testing.T) {
	s, count := lookups(t, testkit.SQLite(t))
	keyring := newKeyring(s)
	whole := NewKey().Text()
	for _, key := range []string{"", "x", "pal_", whole[:len(whole)-1], whole + "0", strings.ToLower(whole), "PAL_" + whole[4:], whole[:20] + "-" + whole[21:], strings.Repeat("pal_", 10_000)} {
		check.Contains(t, tryKey(keyring, key), "malformed", "%.60q: want it reported as malformed", key)
	}
	check.Equal(t, count.Load(), 0, "lookups")
}

func TestRecheck(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s, count := lookups(t, cfg)
		acc, keys := createAccount(t, s, "ana@example.com", Pro, 2)
		accounts, keyring, at := NewAccounts(s), newKeyring(s), &clock{}
		keyring.now = at.now
		callers := make([]Caller, 2)
		for i, text := range keys {
			key, _ := ParseKey(text)
			callers[i] = CallerOf(acc, key.ID)
		}
		verify := func(i int, want Plan, rejection string) {
			t.Helper()
			got, err := keyring.Recheck(t.Context(), callers[i])
			wanted := callers[i]
			wanted.Plan = want
			check.True(t, rejection != "" || err == nil && got == wanted, "got %+v, %v, want plan %s", got, err, want)
			var p *problem.Problem
			if rejection != "" && (!errors.As(err, &p) || p.Code != problem.Unauthenticated || !strings.Contains(p.Message, rejection)) {
				t.Errorf("got %+v, %v, want an error that contains %q", got, err, rejection)
			}
		}
		verify(0, Pro, "")
		count.Store(0)
		verify(0, Pro, "")
		check.Equal(t, count.Load(), 0, "lookups within a second")
		check.OK(t, accounts.SetPlan(t.Context(), acc, Developer))
		at.pass(lookup.FreshFor)
		verify(0, Developer, "")
		check.OK(t, accounts.Revoke(t.Context(), keys[0]))
		at.pass(lookup.FreshFor)
		verify(0, "", "revoked")
		verify(1, Developer, "")
		check.OK(t, accounts.Delete(t.Context(), acc))
		at.pass(lookup.FreshFor)
		verify(1, "", "does not exist")

		anonymous := Caller{Plan: Anonymous}
		got := check.Try(keyring.Recheck(t.Context(), anonymous)).OK(t)
		check.Equal(t, got, anonymous)
		// Without a database, callers stay the same.
		keyring.ForgetAccount(acc.ID)
		_ = s.Close()
		verify(0, Pro, "")
	})
}

// PostgreSQL reports an error for text with such bytes, which would be a 503. Nobody was ever
// given such a key, but its checksum can be computed.
func TestKeysThatNoDatabaseStores(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		keyring := newKeyring(s)
		for _, id := range []string{"\xff123456789ab", "\x00123456789ab"} {
			for _, prefix := range []string{keyPrefix, accessPrefix} {
				got := tryKey(keyring, tokenText(prefix, id+strings.Repeat("x", secretLength)))
				check.Contains(t, got, "malformed", "%s%q: want a malformed key", prefix, id)
			}
		}
	})
}

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
