package auth

import (
	"context"
	"time"

	"palmares/ent/confirmation"
	"palmares/ent/session"
	"palmares/internal/store"
)

// Tidy forgets messages and sessions whose time is over: they hold where
// people wrote from.
func Tidy(ctx context.Context, s *store.Store, now time.Time) error {
	now = now.UTC()
	if _, err := s.Write.Confirmation.Delete().Where(confirmation.CreatedAtLT(now.Add(-confirmationKept))).Exec(ctx); err != nil {
		return store.Explain(err)
	}
	_, err := s.Write.Session.Delete().Where(session.ExpiresAtLT(now)).Exec(ctx)
	return store.Explain(err)
}
