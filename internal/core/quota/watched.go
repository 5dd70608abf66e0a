package quota

import "context"

// Watched is a store that tells when it begins to count a request, and when it
// is done.
type Watched struct {
	Store
	Watch func(context.Context) (done func())
}

// Take implements Store.
func (w Watched) Take(ctx context.Context, s Subject, d Day, quota int) int {
	done := w.Watch(ctx)
	defer done()
	return w.Store.Take(ctx, s, d, quota)
}
