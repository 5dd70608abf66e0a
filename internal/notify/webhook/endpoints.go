package webhook

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/journalentry"
	"palmares/ent/release"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// MostEndpoints is how many an account may have.
const MostEndpoints = 10

const mostCategories = 50

// Wish is what somebody wants to be sent, and where.
type Wish struct {
	URL        string
	Types      []string // of events; all if empty
	Categories []string // all if empty
}

var slugShaped = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (w *Webhooks) check(wish Wish) (Wish, error) {
	address, err := w.checkURL(wish.URL)
	if err != nil {
		return wish, err
	}
	checked := Wish{URL: address, Types: []string{}, Categories: []string{}}
	for _, kind := range wish.Types {
		if !slices.Contains(journal.Events, kind) {
			return wish, problem.New(problem.BadInput, "There is no event %.40q: there are %s.", kind, strings.Join(journal.Events, ", "))
		}
		checked.Types = append(checked.Types, kind)
	}
	for _, slug := range wish.Categories {
		if len(slug) > 80 || !slugShaped.MatchString(slug) {
			return wish, problem.New(problem.BadInput, "%.80q is not a category's slug.", slug)
		}
		checked.Categories = append(checked.Categories, slug)
	}
	if len(checked.Categories) > mostCategories {
		return wish, problem.New(problem.BadInput, "More than %d categories are named: leave them out for all.", mostCategories)
	}
	slices.Sort(checked.Types)
	slices.Sort(checked.Categories)
	checked.Types, checked.Categories = slices.Compact(checked.Types), slices.Compact(checked.Categories)
	return checked, nil
}

// Add makes an endpoint that gets what comes from now on. Its secret is shown
// to its owner once.
func (w *Webhooks) Add(ctx context.Context, acc *ent.Account, wish Wish) (*ent.Endpoint, error) {
	wish, err := w.check(wish)
	if err != nil {
		return nil, err
	}
	var made *ent.Endpoint
	err = w.Store.InTurn(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		owner, err := tx.Account.Get(ctx, acc.ID)
		if err != nil {
			return err
		}
		if !auth.Plan(owner.Plan).Terms().Webhooks {
			return problem.New(problem.Forbidden, "Webhooks are part of the Pro plan.")
		}
		count, err := tx.Endpoint.Query().Where(endpoint.AccountID(acc.ID)).Count(ctx)
		if err != nil {
			return err
		}
		if count >= MostEndpoints {
			return problem.New(problem.BadInput, "All %d endpoints are made: remove one first.", MostEndpoints)
		}
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		made, err = tx.Endpoint.Create().SetAccountID(acc.ID).SetURL(wish.URL).SetTypes(wish.Types).SetCategories(wish.Categories).
			SetSecret(newSecret()).SetPosition(newest).SetCreatedAt(w.now().UTC()).Save(ctx)
		return err
	})
	return made, err
}

// List is an account's endpoints, oldest first; every account's if nil.
func (w *Webhooks) List(ctx context.Context, acc *ent.Account) ([]*ent.Endpoint, error) {
	query := w.Store.Current().Endpoint.Query().WithAccount().Order(endpoint.ByID())
	if acc != nil {
		query.Where(endpoint.AccountID(acc.ID))
	}
	all, err := query.All(ctx)
	return all, store.Explain(err)
}

// Find is an endpoint of an account's own; anybody's if nil.
func (w *Webhooks) Find(ctx context.Context, acc *ent.Account, id int) (*ent.Endpoint, error) {
	query := w.Store.Current().Endpoint.Query().Where(endpoint.ID(id)).WithAccount()
	if acc != nil {
		query.Where(endpoint.AccountID(acc.ID))
	}
	found, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoEndpoint
	}
	return found, store.Explain(err)
}

// Rotate gives an endpoint a new secret; for a day both sign.
func (w *Webhooks) Rotate(ctx context.Context, e *ent.Endpoint) (secret string, err error) {
	secret = newSecret()
	return secret, store.Explain(w.Store.Write.Endpoint.UpdateOneID(e.ID).SetSecret(secret).
		SetFormerSecret(e.Secret).SetFormerUntil(w.now().UTC().Add(bothSign)).Exec(ctx))
}

// Pause ends sending; what happens meanwhile is not sent later.
func (w *Webhooks) Pause(ctx context.Context, e *ent.Endpoint) error {
	return w.stop(ctx, e, endpoint.StatePaused, "")
}

// Disable is a pause with a reason that the owner is shown.
func (w *Webhooks) Disable(ctx context.Context, e *ent.Endpoint, why string) error {
	return w.stop(ctx, e, endpoint.StateDisabled, why)
}

func (w *Webhooks) stop(ctx context.Context, e *ent.Endpoint, state endpoint.State, why string) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		// The endpoint first, as a round does: else the two could wait for each other.
		if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetState(state).SetWhy(why).SetUntold(false).Exec(ctx); err != nil {
			return err
		}
		_, err := tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx)
		return err
	})
}

// Resume sends what comes from now on.
func (w *Webhooks) Resume(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		return tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetState(endpoint.StateActive).SetWhy("").SetUntold(false).
			SetFailures(0).ClearFailingSince().ClearNotBefore().SetPosition(newest).Exec(ctx)
	})
}

// Remove forgets an endpoint.
func (w *Webhooks) Remove(ctx context.Context, e *ent.Endpoint) error {
	_, err := w.Store.Write.Endpoint.Delete().Where(endpoint.ID(e.ID)).Exec(ctx)
	return store.Explain(err)
}

// Replay sends one event again, under its own id.
func (w *Webhooks) Replay(ctx context.Context, e *ent.Endpoint, id string) error {
	if err := sending(e); err != nil {
		return err
	}
	number, ours := journal.ParseID(id)
	if !ours {
		return problem.New(problem.BadInput, "%.40q is not an event's id, such as evt_42.", id)
	}
	there, err := w.Store.Current().JournalEntry.Query().Where(journalentry.ID(number), journalentry.EventNotNil()).Exist(ctx)
	if err != nil {
		return store.Explain(err)
	}
	if !there {
		return problem.New(problem.NotFound, "There is no event %s.", id)
	}
	now := w.now().UTC()
	return store.Explain(w.Store.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(number).SetNextAt(now).
		OnConflictColumns(delivery.FieldEndpointID, delivery.FieldEvent).
		Update(func(u *ent.DeliveryUpsert) { u.SetNextAt(now) }).Exec(ctx))
}

// ReplaySince sends everything again that was published since a time.
func (w *Webhooks) ReplaySince(ctx context.Context, e *ent.Endpoint, since time.Time) error {
	if err := sending(e); err != nil {
		return err
	}
	before, err := w.lastBefore(ctx, since)
	if err != nil {
		return store.Explain(err)
	}
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		moved, err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.PositionGT(before)).SetPosition(before).Save(ctx)
		if err != nil || moved == 0 {
			return err
		}
		// What was to be tried again comes with the rest.
		_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.EventGT(before)).Exec(ctx)
		return err
	})
}

// lastBefore is the last entry of the journal from before a time. Times are
// compared here: SQLite has them as text, each in the zone of its writer.
func (w *Webhooks) lastBefore(ctx context.Context, since time.Time) (int, error) {
	releases, err := w.Store.Current().Release.Query().Select(release.FieldID, release.FieldImportedAt).Order(ent.Desc(release.FieldID)).All(ctx)
	if err != nil {
		return 0, err
	}
	for _, r := range releases {
		if !r.ImportedAt.Before(since) {
			continue
		}
		last, err := w.Store.Current().JournalEntry.Query().Where(journalentry.ReleaseNumber(r.ID)).Order(ent.Desc(journalentry.FieldID)).FirstID(ctx)
		if !ent.IsNotFound(err) {
			return last, err
		}
	}
	return 0, nil
}

var errNoEndpoint = problem.New(problem.NotFound, "There is no such endpoint.")

// sending refuses what an endpoint that sends nothing cannot do.
func sending(e *ent.Endpoint) error {
	switch {
	case e.Edges.Account == nil: // deleted between two statements
		return errNoEndpoint
	case e.State != endpoint.StateActive:
		return problem.New(problem.BadInput, "This endpoint is %s. Resume it before you replay events.", e.State)
	case !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks:
		return problem.New(problem.Forbidden, "Webhooks are part of the Pro plan.")
	}
	return nil
}

// Waiting is how many events an endpoint is still to get after a failure.
func (w *Webhooks) Waiting(ctx context.Context, e *ent.Endpoint) (int, error) {
	n, err := w.Store.Current().Delivery.Query().Where(delivery.EndpointID(e.ID)).Count(ctx)
	return n, store.Explain(err)
}
