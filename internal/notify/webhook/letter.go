package webhook

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"palmares/ent"
	"palmares/ent/endpoint"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

// tellOwner sends the letter about an endpoint that was disabled. That it is to
// be sent is known to the database until it has gone out, so that it is not
// lost with a server, nor while there is no mail.
func (w *Webhooks) tellOwner(ctx context.Context, e *ent.Endpoint) error {
	page := fmt.Sprintf("%s/account/webhooks/%d", w.PublicURL, e.ID)
	err := w.Mail.Send(ctx, mail.WebhookDisabled(e.Edges.Account.Email, w.ServiceName, e.URL, e.Why, page))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && problem.Of(err).Code == problem.Unavailable {
		w.Log.Warn("a letter about a webhook waits", "endpoint", e.ID, "why", problem.Of(err).Message)
		return river.JobSnooze(w.times.letter)
	}
	if err != nil { // nor would it go out later
		w.Mail.GivenUp.Add(1)
		w.Log.Error("a letter about a webhook is given up", "endpoint", e.ID, "why", problem.Of(err).Message)
	}
	return store.Explain(w.Store.Write.Endpoint.Update().Where(endpoint.ID(e.ID)).SetUntold(false).Exec(context.WithoutCancel(ctx)))
}
