package main

import (
	"context"
	"time"

	"palmares/auth"
	"palmares/internal/account/billing"
	"palmares/internal/core/quota"
)

const (
	// tidyEvery is how often data past its date is deleted.
	tidyEvery = 10 * time.Minute
	// mostApart is how far this server's clock and the database's may differ
	// where data is deleted by the time: one of them is wrong otherwise.
	mostApart = time.Hour
)

// tidy deletes data that is past its date now.
func (p *people) tidy(ctx context.Context, now time.Time) {
	apart, err := p.store.ClockOffset(ctx, now)
	if err != nil {
		p.warn(ctx, "reading the database clock failed", err)
		return
	}
	if apart.Abs() > mostApart {
		p.log.Warn("cleanup skipped: the clocks of server and database differ", "database_ahead_by", apart.Round(time.Second))
		return
	}
	if err := auth.Tidy(ctx, p.store, now); err != nil {
		p.warn(ctx, "deleting expired sessions and messages failed", err)
	}
	if err := quota.Tidy(ctx, p.store, quota.DayOf(now)); err != nil {
		p.warn(ctx, "deleting counts of earlier days failed", err)
	}
	if err := billing.DeleteOldEvents(ctx, p.store, now); err != nil {
		p.warn(ctx, "deleting old billing events failed", err)
	}
	if err := p.hooks.Tidy(ctx); err != nil {
		p.warn(ctx, "deleting old webhook attempts failed", err)
	}
}

// warn logs a failure, unless the server is ending.
func (p *people) warn(ctx context.Context, message string, err error) {
	if ctx.Err() == nil {
		p.log.Warn(message, "cause", err)
	}
}
