package webhook

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/ent/attempt"
	"palmares/ent/predicate"
	"palmares/internal/core/store"
)

// AttemptsQuery says which attempts to show.
type AttemptsQuery struct {
	Failed bool // only those that did not arrive
	Before int  // only older ones than this; the newest if 0
	Most   int
}

// Attempts are an endpoint's of the last 30 days, newest first, and whether
// there are older ones.
func (w *Webhooks) Attempts(ctx context.Context, e *ent.Endpoint, q AttemptsQuery) (all []*ent.Attempt, older bool, err error) {
	query := w.Store.Current().Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.AtGT(w.now().UTC().Add(-attemptsKept))).
		Order(ent.Desc(attempt.FieldAt), ent.Desc(attempt.FieldID)).Limit(q.Most + 1)
	if q.Failed {
		query.Where(attempt.Delivered(false))
	}
	if q.Before > 0 {
		before, err := w.olderThan(ctx, e, q.Before)
		if ent.IsNotFound(err) { // it is forgotten, and with it what was before
			return nil, false, nil
		}
		if err != nil {
			return nil, false, store.Explain(err)
		}
		query.Where(before...)
	}
	all, err = query.All(ctx)
	if len(all) > q.Most {
		all, older = all[:q.Most], true
	}
	return all, older, store.Explain(err)
}

// olderThan are the attempts that come after one in the order of the page.
func (w *Webhooks) olderThan(ctx context.Context, e *ent.Endpoint, id int) ([]predicate.Attempt, error) {
	last, err := w.Store.Current().Attempt.Query().Where(attempt.ID(id), attempt.EndpointID(e.ID)).Only(ctx)
	if err != nil {
		return nil, err
	}
	at := last.At.UTC()
	return []predicate.Attempt{
		attempt.AtLTE(at), // the index knows it
		attempt.Or(attempt.AtLT(at), attempt.IDLT(id)),
	}, nil
}

func (w *Webhooks) forgetAttempts(ctx context.Context, before time.Time, most int) (int, error) {
	old, err := w.Store.Current().Attempt.Query().Where(attempt.AtLT(before.UTC())).Order(attempt.ByAt()).Limit(most).IDs(ctx)
	if err != nil || len(old) == 0 {
		return 0, store.Explain(err)
	}
	n, err := w.Store.Write.Attempt.Delete().Where(attempt.IDIn(old...)).Exec(ctx)
	return n, store.Explain(err)
}
