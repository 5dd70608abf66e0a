package saved

import (
	"context"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/savedquery"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
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

// noticeRetry is the time between attempts to send emails.
const noticeRetry = time.Minute

// Run finds queries that this version of the program no longer accepts, and sends
// emails to their owners.
func (s *Queries) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.each(ctx, func(row *ent.SavedQuery, text string) error {
			reason := ""
			if _, err := newQuery(s.Executor, text); err != nil {
				reason = err.Error()
			}
			if reason == row.BrokenReason {
				return nil
			}
			// Only one of several servers makes the change.
			return s.Store.Write.SavedQuery.Update().Where(savedquery.ID(row.ID), savedquery.Hash(row.Hash), savedquery.BrokenReason(row.BrokenReason)).
				SetBrokenReason(reason).SetNotifyOwner(reason != "" && row.BrokenReason == "").Exec(ctx)
		})
		pending := 0
		if err == nil {
			pending, err = s.notifyOwners(ctx)
		}
		if err == nil && pending == 0 {
			return
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("checking saved queries failed", "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(noticeRetry):
		}
	}
}

// notifyOwners sends pending emails and returns how many failed.
func (s *Queries) notifyOwners(ctx context.Context) (failed int, err error) {
	rows, err := s.Store.Read.SavedQuery.Query().Where(savedquery.NotifyOwner(true)).WithAccount().All(ctx)
	for _, row := range rows {
		// Of several servers, the first to clear the flag sends the email.
		n, err := s.Store.Write.SavedQuery.Update().Where(savedquery.ID(row.ID), savedquery.NotifyOwner(true)).SetNotifyOwner(false).Save(ctx)
		if err != nil {
			return failed, err
		}
		if n == 0 || row.Edges.Account == nil {
			continue
		}
		l := lang.Language(row.Edges.Account.Language)
		err = s.Mail.Send(ctx, mail.QueryBroken(l, row.Edges.Account.Email, s.Service.ServiceName, row.Name, row.BrokenReason, s.Service.PublicURL+l.Path("/account/queries")))
		if err == nil {
			continue
		}
		s.Log.Warn("sending an email about a saved query failed", "query", row.ID, "reason", problem.Of(err).Message)
		if problem.Of(err).Code == problem.Unavailable {
			failed++
			if err := s.Store.Write.SavedQuery.UpdateOneID(row.ID).SetNotifyOwner(true).Exec(context.WithoutCancel(ctx)); err != nil {
				return failed, ent.MaskNotFound(err)
			}
		}
	}
	return failed, err
}
