package auth

import (
	"context"
	"time"

	"palmares/ent/apikey"
	"palmares/ent/confirmation"
	"palmares/ent/customer"
	"palmares/ent/formerusage"
	"palmares/ent/session"
	"palmares/internal/core/store"
)

// revokedKept is how long an owner can still see that a key was revoked.
const revokedKept = 90 * 24 * time.Hour

// Tidy deletes messages and sessions past their date, keys that were revoked
// long ago, what deleted accounts used on earlier days, and the addresses of
// deleted accounts. Sessions, messages and usage from the future go as well: a
// clock was wrong when they were stored. The caller makes sure that the clock
// can be trusted: see clock.Steady.
func Tidy(ctx context.Context, s *store.Store, now time.Time) error {
	now = now.UTC()
	if _, err := s.Write.Confirmation.Delete().Where(confirmation.Not(sentWithin(confirmationKept, now))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	if _, err := s.Write.Session.Delete().Where(session.Not(validAt(now))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	if _, err := s.Write.APIKey.Delete().Where(apikey.RevokedAtLT(now.Add(-revokedKept))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	day, tomorrow := dayOf(now), dayOf(now.AddDate(0, 0, 1))
	if _, err := s.Write.FormerUsage.Delete().Where(formerusage.Or(formerusage.DayLT(day), formerusage.DayGT(tomorrow))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	err := s.Write.Customer.Update().Where(customer.AccountIDIsNil(), customer.EmailNEQ("")).SetEmail("").Exec(ctx)
	return store.Explain(err)
}
