package saved

import (
	"context"
	"fmt"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/savedquery"
	"palmares/internal/core/lang"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

// checkBatch is how many saved queries are read at a time.
const checkBatch = 100

// Check calls a function with each saved query that this version of the program
// would reject, with its account and the reason. It does not read the catalog, which
// may not have been migrated yet.
func (s *Queries) Check(ctx context.Context, found func(row *ent.SavedQuery, reason error) error) error {
	return s.each(ctx, func(row *ent.SavedQuery, text string) error {
		q, reason := newQuery(s.Executor, text)
		if reason == nil {
			reason = q.try(ctx, auth.Plan(row.Edges.Account.Plan), s.Executor.Check)
		}
		if reason != nil {
			return found(row, reason)
		}
		return nil
	})
}

func (s *Queries) each(ctx context.Context, use func(row *ent.SavedQuery, text string) error) error {
	for last := 0; ; {
		rows, err := s.Store.Read.SavedQuery.Query().Where(savedquery.IDGT(last)).WithAccount().Order(savedquery.ByID()).Limit(checkBatch).All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			last = row.ID
			text, err := s.Text(ctx, &Query{SavedQuery: row})
			if ent.IsNotFound(err) || row.Edges.Account == nil {
				continue // its account has just been deleted
			}
			if err == nil {
				err = use(row, text)
			}
			if err != nil {
				return err
			}
		}
	}
}

// checkRetry is the time until queries are checked again if that failed.
const checkRetry = time.Minute

// Run finds queries that this version of the program no longer accepts, and notifies their
// owners.
func (s *Queries) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.each(ctx, func(row *ent.SavedQuery, text string) error {
			_, err := newQuery(s.Executor, text)
			return s.recordBroken(ctx, row, err)
		})
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			s.Log.Warn("checking saved queries failed", "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkRetry):
		}
	}
}

// recordBroken stores why a query is not accepted, or that it is.
func (s *Queries) recordBroken(ctx context.Context, row *ent.SavedQuery, broken error) error {
	reason := ""
	if broken != nil {
		reason = broken.Error()
	}
	if reason == row.BrokenReason {
		return nil
	}
	return s.Store.Update(ctx, func(tx *ent.Tx) error {
		// Only one of several servers makes the change.
		changed, err := tx.SavedQuery.Update().Where(savedquery.ID(row.ID), savedquery.Hash(row.Hash), savedquery.BrokenReason(row.BrokenReason)).
			SetBrokenReason(reason).Save(ctx)
		switch {
		case err != nil || changed == 0:
			return err
		case reason == "":
			return outbox.Withdraw(ctx, tx, aboutQuery(row.AccountID, row.Name))
		case row.BrokenReason != "":
			return nil
		}
		owner, l := row.Edges.Account, lang.Language(row.Edges.Account.Language)
		return outbox.Add(ctx, tx, aboutQuery(row.AccountID, row.Name), mail.QueryBroken(l, owner.Email, s.Service.ServiceName, row.Name, reason, s.Service.PublicURL+l.Path("/account/queries")))
	})
}

// aboutQuery is what the email about a broken query is about.
func aboutQuery(account int, name string) string { return fmt.Sprintf("query %d/%s", account, name) }
