package auth

import (
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

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
			if err := rememberDeleted(t.Context(), tx, acc, a.time); err != nil {
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
