package billing

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
)

const (
	// freshFor is how long what was read at Stripe need not be read again:
	// whoever reloads a page must not make us ask each time.
	freshFor = 3 * time.Second
	syncTime = 20 * time.Second
)

// Sync reads an account's subscription again, if it has any: once for all who
// want to know at the same time.
func (b *Billing) Sync(ctx context.Context, acc *ent.Account) error {
	row, err := b.Customer(ctx, acc)
	if err != nil || row == nil || !b.Open() || b.fresh(row) {
		return err
	}
	synced := b.syncing.DoChan(row.ID, func() (any, error) {
		// Whoever asked first may go away; the others still want to know.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTime)
		defer cancel()
		return nil, b.readSince(ctx, row, acc)
	})
	select {
	case result := <-synced:
		return result.Err
	case <-ctx.Done():
		return failed(ctx.Err())
	}
}

// fresh tells whether a customer was read a moment ago. Who was not Pro then
// may have paid since.
func (b *Billing) fresh(row *ent.Customer) bool {
	return paid(row.Status) && row.ReadAt != nil && b.now().Sub(*row.ReadAt) < freshFor
}

// readSince reads a subscription, unless another did since we saw the row.
func (b *Billing) readSince(ctx context.Context, seen *ent.Customer, acc *ent.Account) error {
	row, err := b.Store.Current().Customer.Get(ctx, seen.ID)
	if err != nil {
		return store.Explain(err)
	}
	if row.ReadAt != nil && (seen.ReadAt == nil || row.ReadAt.After(*seen.ReadAt)) {
		return nil
	}
	if b.clicks.count(acc.ID, b.now()) != nil {
		return nil // what was read last does for the rest of the minute
	}
	return b.refresh(ctx, row.ID, nil)
}
