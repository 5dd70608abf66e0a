package auth

import (
	"context"
	"time"

	"palmares/ent/apikey"
	"palmares/ent/confirmation"
	"palmares/ent/customer"
	"palmares/ent/session"
	"palmares/internal/store"
)

// revokedKept is how long an owner can still see that a key was revoked.
const revokedKept = 90 * 24 * time.Hour

// Tidy forgets what we need no more: messages and sessions whose time is over,
// keys that were revoked long ago, and addresses of those who left.
func Tidy(ctx context.Context, s *store.Store, now time.Time) error {
	now = now.UTC()
	if _, err := s.Write.Confirmation.Delete().Where(confirmation.CreatedAtLT(now.Add(-confirmationKept))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	if _, err := s.Write.Session.Delete().Where(session.ExpiresAtLT(now)).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	if _, err := s.Write.APIKey.Delete().Where(apikey.RevokedAtLT(now.Add(-revokedKept))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	err := s.Write.Customer.Update().Where(customer.AccountIDIsNil(), customer.EmailNEQ("")).SetEmail("").Exec(ctx)
	return store.Explain(err)
}
