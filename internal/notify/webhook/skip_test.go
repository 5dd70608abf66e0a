package webhook

import (
	"context"
	"slices"
	"sync"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Who sends again just as a round is about to pass over what it missed gets
// what is published from then on.
func TestBackWhileSkipping(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		accounts := auth.NewAccounts(db)
		for what, turn := range map[string]struct{ away, back func(id int) error }{
			"a pause": {
				func(id int) error { return s.Pause(t.Context(), s.find(id)) },
				func(id int) error { return s.Resume(t.Context(), s.find(id)) },
			},
			"another plan": {
				func(int) error { return accounts.SetPlan(t.Context(), s.owner, auth.Developer) },
				func(int) error { return accounts.SetPlan(t.Context(), s.owner, auth.Pro) },
			},
		} {
			r := newReceiver(t)
			e := s.add(Wish{URL: r.URL})
			if err := turn.away(e.ID); err != nil {
				t.Fatal(err)
			}
			seen := s.find(e.ID) // by the round
			if err := s.skip(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
			if err := turn.back(e.ID); err != nil {
				t.Fatal(err)
			}
			first := tell(t, db, 3)
			if err := s.Replay(t.Context(), s.find(e.ID), ids(first+1, 1)[0]); err != nil {
				t.Fatal(err)
			}
			if err := s.skip(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
			s.sendDue(e)
			if got := r.ids(); !slices.Equal(slices.Sorted(slices.Values(got)), ids(first, 4)) {
				t.Errorf("after %s came %v", what, got)
			}
		}
	})
}

// An account is deleted between the two statements that read an endpoint.
func TestDeletedWhileRead(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		e := s.add(Wish{URL: newReceiver(t).URL})
		var deleting sync.Once
		db.Current().Account.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				deleting.Do(func() {
					if err := auth.NewAccounts(db).Delete(ctx, s.owner); err != nil {
						t.Error(err)
					}
				})
				return next.Query(ctx, q)
			})
		}))
		s.sendDue(e)
	})
}
