package publish

import (
	"context"
	"fmt"

	"palmares/ent"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
)

// Pruning describes the removal of the history before a release.
type Pruning struct {
	First, Last    *ent.Release // the range that can no longer be read
	Oldest, Newest *ent.Release // the range that can still be read
	Rows           int          // the number of rows that were removed
}

// Prune removes the history of all releases before the given one. They can then no
// longer be read. Running servers detect this like a new release.
func Prune(ctx context.Context, s *store.Store, before int) (p *Pruning, err error) {
	err = s.Exclusive(ctx, func(tx *ent.Tx) error {
		if p, err = PlanPruning(ctx, tx.Release, before); err != nil {
			return err
		}
		versions, err := store.PruneVersions(ctx, tx, before)
		if err != nil {
			return err
		}
		indexed, err := search.Prune(ctx, tx, before)
		if err != nil {
			return err
		}
		p.Rows = versions + indexed
		if err := tx.Release.UpdateOne(p.Newest).SetHistoryFrom(before).Exec(ctx); err != nil {
			return err
		}
		return s.NotifyRelease(ctx, tx, p.Newest.ID)
	})
	return p, err
}

// PlanPruning returns what Prune would do, without the number of rows.
func PlanPruning(ctx context.Context, releases *ent.ReleaseClient, before int) (*Pruning, error) {
	newest, err := store.NewestRelease(ctx, releases)
	switch {
	case err != nil:
		return nil, err
	case newest == nil:
		return nil, ErrEmptyCatalog
	case newest.HistoryFrom == newest.ID:
		return nil, fmt.Errorf("there is no history to prune: only release %d can be read", newest.ID)
	case before <= newest.HistoryFrom || before > newest.ID:
		return nil, fmt.Errorf("before must be a release from %d to %d (got %d)", newest.HistoryFrom+1, newest.ID, before)
	}
	p := &Pruning{Newest: newest}
	for _, part := range []struct {
		number  int
		release **ent.Release
	}{{newest.HistoryFrom, &p.First}, {before - 1, &p.Last}, {before, &p.Oldest}} {
		if *part.release, err = releases.Get(ctx, part.number); err != nil {
			return nil, err
		}
	}
	return p, nil
}
