package billing

import (
	"context"
	"time"

	"palmares/ent"
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
	if err != nil || row == nil || !b.Open() {
		return err
	}
	if row.ReadAt != nil && b.now().Sub(*row.ReadAt) < freshFor {
		return nil
	}
	synced := b.syncing.DoChan(row.ID, func() (any, error) {
		// Whoever asked first may go away; the others still want to know.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTime)
		defer cancel()
		return nil, b.refresh(ctx, row.ID, nil)
	})
	select {
	case result := <-synced:
		return result.Err
	case <-ctx.Done():
		return failed(ctx.Err())
	}
}
