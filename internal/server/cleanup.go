package server

import (
	"context"
	"log/slog"
	"time"

	"palmares/auth"
	"palmares/internal/account/billing"
	"palmares/internal/core/clock"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/webhook"
)

const (
	cleanupInterval = 10 * time.Minute
	// maxClockOffset is how far the clocks of the server and the database may differ:
	// with a wrong clock, cleanup would delete valid data.
	maxClockOffset = time.Hour
)

// cleanup deletes expired data.
type cleanup struct {
	store    *store.Store
	webhooks *webhook.Webhooks
	log      *slog.Logger
}

func (c *cleanup) run(ctx context.Context) {
	steady := clock.NewSteady()
	steady.Now() // the clock is trusted hours after its first reading
	clock.Every(ctx, cleanupInterval, func() {
		if now, trusted := steady.Now(); trusted {
			c.delete(ctx, now)
		}
	})
}

// delete deletes data that has expired at the given time.
func (c *cleanup) delete(ctx context.Context, now time.Time) {
	offset, err := c.store.ClockOffset(ctx, now)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.log.Warn("reading the database clock failed", "cause", err)
		return
	case offset.Abs() > maxClockOffset:
		c.log.Warn("cleanup skipped: the clocks of server and database differ", "database_ahead_by", offset.Round(time.Second))
		return
	}
	for data, remove := range map[string]func() error{
		"sessions and messages": func() error { return auth.DeleteExpired(ctx, c.store, now) },
		"request counts":        func() error { return ledger.Tidy(ctx, c.store, quota.DayOf(now)) },
		"billing events":        func() error { return billing.DeleteOldEvents(ctx, c.store, now) },
		"webhook attempts":      func() error { return c.webhooks.Tidy(ctx) },
	} {
		if err := remove(); err != nil && ctx.Err() == nil {
			c.log.Warn("cleanup failed", "data", data, "cause", err)
		}
	}
}
