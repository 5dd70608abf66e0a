package webhook

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/attempt"
	"palmares/ent/delivery"
	"palmares/ent/endpoint"
	"palmares/ent/journalentry"
	"palmares/ent/release"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
	"palmares/internal/notify/outbox"
)

const (
	// MaxEndpoints is the number of endpoints that an account can have.
	MaxEndpoints = 10

	maxFilters = 50 // categories, and tools
	maxSlug    = 80 // characters
	// attemptRetention is how long attempts are stored.
	attemptRetention = 30 * 24 * time.Hour
)

// NewEndpoint describes a new endpoint.
type NewEndpoint struct {
	URL   string
	Types []string // event types; all if empty
	Filter
	Batches bool // send several events in one request
}

// Filter selects events about some categories and tools, by their slugs. An empty
// one selects all events.
type Filter struct{ Categories, Tools []string }

// FilterOf returns the filter of an endpoint.
func FilterOf(e *ent.Endpoint) Filter { return Filter{e.Categories, e.Tools} }

var (
	errNoEndpoint = problem.New(problem.NotFound, "There is no such endpoint.")
	errNotPro     = problem.New(problem.Forbidden, "Webhooks require the Pro plan.")
	slugPattern   = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// check validates and normalizes the settings of an endpoint.
func (w *Webhooks) check(ctx context.Context, spec NewEndpoint) (NewEndpoint, error) {
	address, err := w.checkURL(spec.URL)
	if err != nil {
		return spec, err
	}
	for _, kind := range spec.Types {
		if !slices.Contains(journal.Events, kind) {
			return spec, problem.New(problem.BadInput, "Unknown event type %.40q. The event types are %s.", kind, strings.Join(journal.Events, ", "))
		}
	}
	if err := w.checkFilter(ctx, spec.Filter); err != nil {
		return spec, err
	}
	spec.URL, spec.Types = address, sortedSet(spec.Types)
	spec.Categories, spec.Tools = sortedSet(spec.Categories), sortedSet(spec.Tools)
	return spec, nil
}

// checkFilter returns an error if the newest release does not have a category or a tool.
// Before the first release, any slug is accepted.
func (w *Webhooks) checkFilter(ctx context.Context, f Filter) error {
	switch {
	case len(f.Categories) == 0 && len(f.Tools) == 0:
		return nil
	case len(f.Categories) > maxFilters || len(f.Tools) > maxFilters:
		return problem.New(problem.BadInput, "Choose at most %d categories and %d tools, or none to receive events for all.", maxFilters, maxFilters)
	}
	newest, err := w.Release(ctx)
	if err != nil {
		return err
	}
	for _, slug := range f.Categories {
		switch {
		case len(slug) > maxSlug || !slugPattern.MatchString(slug):
			return problem.New(problem.BadInput, "%.80q is not a valid category slug.", slug)
		case newest.Number() > 0 && newest.Category(slug) == nil:
			var slugs []string
			for _, c := range newest.Categories {
				slugs = append(slugs, c.Slug)
			}
			return problem.New(problem.BadInput, "There is no category %q. The categories are %s.", slug, strings.Join(slugs, ", "))
		}
	}
	for _, slug := range f.Tools {
		switch {
		case len(slug) > maxSlug || !slugPattern.MatchString(slug):
			return problem.New(problem.BadInput, "%.80q is not a valid tool slug (example: plume).", slug).For("tools")
		case newest.Number() == 0 || newest.Tool(slug) != nil:
		default:
			if near := newest.NearestTool(slug); near != "" {
				return problem.New(problem.BadInput, "There is no tool %q. Did you mean %q?", slug, near).For("tools")
			}
			return problem.New(problem.BadInput, "There is no tool %q. Use the slug in the address of its page.", slug).For("tools")
		}
	}
	return nil
}

// sortedSet never returns nil, which JSON would encode as null.
func sortedSet(list []string) []string {
	set := append([]string{}, list...)
	slices.Sort(set)
	return slices.Compact(set)
}

// Add creates an endpoint that receives the events published from now on.
func (w *Webhooks) Add(ctx context.Context, acc *ent.Account, spec NewEndpoint) (added *ent.Endpoint, err error) {
	if spec, err = w.check(ctx, spec); err != nil {
		return nil, err
	}
	err = w.Store.WithRowLock(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		owner, err := tx.Account.Get(ctx, acc.ID)
		if err != nil {
			return err
		}
		if !auth.Plan(owner.Plan).Terms().Webhooks {
			return errNotPro
		}
		count, err := tx.Endpoint.Query().Where(endpoint.AccountID(acc.ID)).Count(ctx)
		if err != nil {
			return err
		}
		if count >= MaxEndpoints {
			return problem.New(problem.BadInput, "An account can have up to %d endpoints. Remove one first.", MaxEndpoints)
		}
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		added, err = tx.Endpoint.Create().SetAccountID(acc.ID).SetURL(spec.URL).SetTypes(spec.Types).SetCategories(spec.Categories).SetTools(spec.Tools).
			SetBatches(spec.Batches).SetSecret(newSecret()).SetPosition(newest).SetCreatedAt(w.now().UTC()).Save(ctx)
		return err
	})
	return added, err
}

// query returns the endpoints of an account, or all of them if acc is nil.
func (w *Webhooks) query(acc *ent.Account) *ent.EndpointQuery {
	query := w.Store.Read.Endpoint.Query().WithAccount()
	if acc != nil {
		query.Where(endpoint.AccountID(acc.ID))
	}
	return query
}

// List returns the endpoints of an account, oldest first, or those of all
// accounts if acc is nil.
func (w *Webhooks) List(ctx context.Context, acc *ent.Account) ([]*ent.Endpoint, error) {
	return w.query(acc).Order(endpoint.ByID()).All(ctx)
}

// Find returns an endpoint of an account, or of any account if acc is nil.
func (w *Webhooks) Find(ctx context.Context, acc *ent.Account, id int) (*ent.Endpoint, error) {
	found, err := w.query(acc).Where(endpoint.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoEndpoint
	}
	return found, err
}

// Rotate gives an endpoint a new secret. For 24 hours, events are signed with both.
func (w *Webhooks) Rotate(ctx context.Context, e *ent.Endpoint) (*ent.Endpoint, error) {
	return w.Store.Write.Endpoint.UpdateOneID(e.ID).SetSecret(newSecret()).
		SetFormerSecret(e.Secret).SetFormerUntil(w.now().UTC().Add(rotationPeriod)).Save(ctx)
}

// Update changes which events an endpoint receives, and how. The URL cannot be
// changed.
func (w *Webhooks) Update(ctx context.Context, e *ent.Endpoint, spec NewEndpoint) error {
	spec.URL = e.URL
	spec, err := w.check(ctx, spec)
	if err != nil {
		return err
	}
	return w.Store.Write.Endpoint.Update().Where(endpoint.ID(e.ID)).SetTypes(spec.Types).SetCategories(spec.Categories).SetTools(spec.Tools).SetBatches(spec.Batches).Exec(ctx)
}

// SetBatches sets whether an endpoint receives several events in one request.
func (w *Webhooks) SetBatches(ctx context.Context, e *ent.Endpoint, batches bool) error {
	return w.Store.Write.Endpoint.Update().Where(endpoint.ID(e.ID)).SetBatches(batches).Exec(ctx)
}

// Pause stops delivery. Events published during the pause are not sent later.
func (w *Webhooks) Pause(ctx context.Context, e *ent.Endpoint) error {
	return w.stop(ctx, e, endpoint.StatePaused, "")
}

// Disable stops delivery for a reason that the owner can see.
func (w *Webhooks) Disable(ctx context.Context, e *ent.Endpoint, reason string) error {
	return w.stop(ctx, e, endpoint.StateDisabled, reason)
}

func (w *Webhooks) stop(ctx context.Context, e *ent.Endpoint, state endpoint.State, reason string) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		// Lock the endpoint first, as record does, to avoid a deadlock.
		if err := tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetState(state).SetDisabledReason(reason).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Delivery.Delete().Where(delivery.EndpointID(e.ID)).Exec(ctx); err != nil {
			return err
		}
		return outbox.Withdraw(ctx, tx, aboutEndpoint(e))
	})
}

// Resume activates an endpoint. It receives the events published from now on.
func (w *Webhooks) Resume(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		newest, err := journal.Newest(ctx, tx.JournalEntry)
		if err != nil {
			return err
		}
		err = tx.Endpoint.Update().Where(endpoint.ID(e.ID)).SetState(endpoint.StateActive).SetDisabledReason("").
			SetFailures(0).ClearFailingSince().ClearNotBefore().SetPosition(newest).Exec(ctx)
		if err != nil {
			return err
		}
		return outbox.Withdraw(ctx, tx, aboutEndpoint(e))
	})
}

// Remove deletes an endpoint.
func (w *Webhooks) Remove(ctx context.Context, e *ent.Endpoint) error {
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		if _, err := tx.Endpoint.Delete().Where(endpoint.ID(e.ID)).Exec(ctx); err != nil {
			return err
		}
		return outbox.Withdraw(ctx, tx, aboutEndpoint(e))
	})
}

// Replay sends an event or a batch again, with the same ID. If the event is waiting
// for a retry in a batch, the whole batch is sent.
func (w *Webhooks) Replay(ctx context.Context, e *ent.Endpoint, id string) error {
	if err := checkSending(e); err != nil {
		return err
	}
	events, err := w.eventsOf(ctx, e, id)
	if err != nil {
		return err
	}
	now := w.now().UTC()
	// Locking the endpoint first, as record does, avoids a deadlock.
	return w.Store.WithRowLock(ctx, endpoint.Table, e.ID, func(tx *ent.Tx) error {
		if len(events) == 1 && e.Batches {
			pending, err := tx.Delivery.Query().Where(delivery.EndpointID(e.ID), delivery.Event(events[0]), delivery.BatchGT(0)).Only(ctx)
			if err == nil {
				return tx.Delivery.Update().Where(delivery.EndpointID(e.ID), delivery.Batch(pending.Batch)).SetNextAt(now).Exec(ctx)
			}
			if !ent.IsNotFound(err) {
				return err
			}
		}
		return tx.Delivery.MapCreateBulk(events, func(create *ent.DeliveryCreate, i int) {
			create.SetEndpointID(e.ID).SetEvent(events[i]).SetBatch(events[0]).SetNextAt(now)
		}).OnConflict(
			sql.ConflictColumns(delivery.FieldEndpointID, delivery.FieldEvent),
			sql.ResolveWith(func(u *sql.UpdateSet) {
				u.SetExcluded(delivery.FieldNextAt).SetExcluded(delivery.FieldBatch)
			}),
		).Exec(ctx)
	})
}

// eventsOf returns the numbers of the events with the ID of an event, or of a batch
// that was sent to the endpoint.
func (w *Webhooks) eventsOf(ctx context.Context, e *ent.Endpoint, id string) ([]int, error) {
	missing := problem.New(problem.NotFound, "There is no event or batch %.60s.", id)
	if first, isBatch := journal.ParseBatchID(id); isBatch {
		sent, err := w.Store.Read.Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.Event(first), attempt.EventsNotNil()).All(ctx)
		for _, a := range sent {
			if MessageID(a) == id {
				return a.Events, nil
			}
		}
		return nil, cmp.Or[error](err, missing)
	}
	number, ok := journal.ParseID(id)
	if !ok {
		return nil, problem.New(problem.BadInput, "%.60q is not an event ID. IDs look like evt_42 or, for batches, batch_42_0123456789abcdef.", id)
	}
	exists, err := w.Store.Read.JournalEntry.Query().Where(journalentry.ID(number), journalentry.EventNotNil()).Exist(ctx)
	if err == nil && !exists {
		err = missing
	}
	return []int{number}, err
}

// ReplaySince resends all events published since a time.
func (w *Webhooks) ReplaySince(ctx context.Context, e *ent.Endpoint, since time.Time) error {
	if err := checkSending(e); err != nil {
		return err
	}
	before, err := w.lastBefore(ctx, since)
	if err != nil {
		return err
	}
	return w.Store.Update(ctx, func(tx *ent.Tx) error {
		moved, err := tx.Endpoint.Update().Where(endpoint.ID(e.ID), endpoint.PositionGT(before)).SetPosition(before).Save(ctx)
		if err != nil || moved == 0 {
			return err
		}
		// The replay includes the events of these retries.
		_, err = tx.Delivery.Delete().Where(delivery.EndpointID(e.ID), delivery.EventGT(before)).Exec(ctx)
		return err
	})
}

// lastBefore returns the last journal entry before a time. It does not compare times
// in SQL, because SQLite stores them as strings in different time zones.
func (w *Webhooks) lastBefore(ctx context.Context, since time.Time) (int, error) {
	db := w.Store.Read
	releases, err := db.Release.Query().Select(release.FieldID, release.FieldImportedAt).Order(release.ByID()).All(ctx)
	if err != nil {
		return 0, err
	}
	entries := db.JournalEntry.Query().Order(ent.Desc(journalentry.FieldID))
	if i := slices.IndexFunc(releases, func(r *ent.Release) bool { return !r.ImportedAt.Before(since) }); i >= 0 {
		entries.Where(sql.FieldLT(journalentry.FieldReleaseNumber, releases[i].ID))
	}
	last, err := entries.FirstID(ctx)
	return last, ent.MaskNotFound(err)
}

// checkSending returns an error if no events are sent to an endpoint.
func checkSending(e *ent.Endpoint) error {
	switch {
	case e.Edges.Account == nil: // deleted between two queries
		return errNoEndpoint
	case e.State == endpoint.StatePaused:
		return problem.New(problem.BadInput, "This endpoint is paused. Enable it before you resend events.")
	case e.State != endpoint.StateActive:
		return problem.New(problem.BadInput, "This endpoint is disabled. Enable it before you resend events.")
	case !auth.Plan(e.Edges.Account.Plan).Terms().Webhooks:
		return errNotPro
	}
	return nil
}

// PendingRetries returns how many events will be sent to an endpoint again.
func (w *Webhooks) PendingRetries(ctx context.Context, e *ent.Endpoint) (int, error) {
	return w.Store.Read.Delivery.Query().Where(delivery.EndpointID(e.ID)).Count(ctx)
}

// AttemptsQuery selects attempts.
type AttemptsQuery struct {
	Failed bool // only failed attempts
	Before int  // only attempts older than the one with this ID; 0 for the newest
	Limit  int
}

// Attempts returns an endpoint's attempts of the last 30 days, newest first, and
// whether there are older ones.
func (w *Webhooks) Attempts(ctx context.Context, e *ent.Endpoint, q AttemptsQuery) (all []*ent.Attempt, older bool, err error) {
	query := w.Store.Read.Attempt.Query().Where(attempt.EndpointID(e.ID), attempt.AtGT(w.now().UTC().Add(-attemptRetention))).
		Order(ent.Desc(attempt.FieldAt), ent.Desc(attempt.FieldID)).Limit(q.Limit + 1)
	if q.Failed {
		query.Where(attempt.Delivered(false))
	}
	if q.Before > 0 {
		last, err := w.Store.Read.Attempt.Query().Where(attempt.ID(q.Before), attempt.EndpointID(e.ID)).Only(ctx)
		if err != nil { // if it was deleted, so were the older ones
			return nil, false, ent.MaskNotFound(err)
		}
		at := last.At.UTC()
		query.Where(attempt.AtLTE(at), // for the index
			attempt.Or(attempt.AtLT(at), attempt.IDLT(q.Before)))
	}
	all, err = query.All(ctx)
	if len(all) > q.Limit {
		all, older = all[:q.Limit], true
	}
	return all, older, err
}

// Tidy deletes old attempts, in batches that lock the database only briefly.
func (w *Webhooks) Tidy(ctx context.Context) error {
	before := w.now().UTC().Add(-attemptRetention)
	for {
		old, err := w.Store.Read.Attempt.Query().Where(attempt.AtLT(before)).Order(attempt.ByAt()).Limit(5_000).IDs(ctx)
		if err != nil || len(old) == 0 {
			return err
		}
		if _, err := w.Store.Write.Attempt.Delete().Where(attempt.IDIn(old...)).Exec(ctx); err != nil {
			return err
		}
	}
}
