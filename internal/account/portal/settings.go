package portal

import (
	"errors"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/queryversion"
	"palmares/ent/usage"
	"palmares/internal/account/billing"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
	"palmares/internal/notify/webhook"
	"palmares/internal/transport/saved"
)

func (p *Portal) showSettings(v *visit) error {
	sessions, err := p.accounts.Sessions(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "settings", sessions)
}

func (p *Portal) setLanguage(v *visit) error {
	if err := p.accounts.SetLanguage(v.Context(), v.account, v.PostFormValue("language")); err != nil {
		return p.showSettings(v.rejected(err))
	}
	return p.redirect(v, "/account/settings?done=language")
}

func (p *Portal) startEmailChange(v *visit) error {
	if p.SignInDisabled {
		return p.showSettings(v.rejected(problem.New(problem.Forbidden, "Emails cannot be sent at the moment.")))
	}
	challenge, err := p.accounts.StartEmailChange(v.Context(), v.account, v.PostFormValue("email"), p.sender(v))
	if err != nil {
		return p.showSettings(v.rejected(err))
	}
	return emailChangeFlow.send(p, v, challenge, home)
}

// finishEmailChange also notifies the old address, in case of an attack.
func (p *Portal) finishEmailChange(v *visit, found *ent.Confirmation) error {
	notice := mail.EmailChanged(lang.Of(v.Context()), v.account.Email, p.ServiceName, found.Email)
	err := p.accounts.ChangeEmail(v.Context(), found, v.account, p.cookie(v.Request, sessionCookie), func(tx *ent.Tx) error {
		return outbox.Add(v.Context(), tx, "", notice)
	})
	if err == nil {
		p.setCookie(v, browserCookie, "", 0)
	}
	return p.changed(v, err, "/account/settings?done=email")
}

func (p *Portal) signOutEverywhere(v *visit) error {
	err := p.accounts.EndSessions(v.Context(), v.account)
	if err == nil {
		p.setCookie(v, sessionCookie, "", 0)
	}
	return p.changed(v, err, "/login?done=everyone")
}

type deletePage struct {
	Keys, Endpoints int
	Subscribed      bool
	HasInvoices     bool
}

func (p *Portal) confirmDelete(v *visit) error {
	keys, keysErr := p.accounts.Keys(v.Context(), v.account)
	endpoints, endpointsErr := p.Webhooks.List(v.Context(), v.account)
	customer, customerErr := p.Billing.Customer(v.Context(), v.account)
	if err := errors.Join(keysErr, endpointsErr, customerErr); err != nil {
		return err
	}
	return p.show(v, "delete", deletePage{
		Keys: len(auth.Unrevoked(keys)), Endpoints: len(endpoints), HasInvoices: customer != nil, Subscribed: customer != nil && billing.Live(customer.Status),
	})
}

func (p *Portal) deleteAccount(v *visit) error {
	typed, err := auth.NormalizeEmail(v.PostFormValue("email"))
	if err != nil || typed != v.account.Email {
		return p.confirmDelete(v.rejected(problem.New(problem.BadInput, "This does not match the email address of your account. Nothing was deleted.")))
	}
	if err := p.Billing.Cancel(v.Context(), v.account); err != nil {
		return err
	}
	err = p.accounts.Delete(v.Context(), v.account, func(tx *ent.Tx) error {
		if p.SignInDisabled { // without a mail server, the email would only be logged
			return nil
		}
		return outbox.Add(v.Context(), tx, "", mail.AccountDeleted(lang.Of(v.Context()), v.account.Email, p.ServiceName))
	})
	if err == nil {
		p.setCookie(v, sessionCookie, "", 0)
	}
	return p.changed(v, err, "/login?done=deleted")
}

// maxExportedAttempts per endpoint makes an export fit into the server's memory.
const maxExportedAttempts = 2_000

type object = map[string]any

// export writes all data that is stored about the account, except for secrets,
// which are not personal data.
func (p *Portal) export(v *visit) error {
	ctx, acc := v.Context(), v.account
	keys, keysErr := p.accounts.Keys(ctx, acc)
	days, daysErr := p.accounts.Usage(ctx, acc, math.MaxInt32)
	calls, callsErr := p.Store.Read.Usage.Query().Where(usage.Subject(int64(auth.Subject(acc))), usage.EndpointNEQ("")).Order(usage.ByID()).All(ctx)
	sessions, sessionsErr := p.accounts.Sessions(ctx, acc)
	emails, emailsErr := p.accounts.Confirmations(ctx, acc)
	endpoints, endpointsErr := p.exportEndpoints(v)
	queries, queriesErr := p.Queries.List(ctx, acc)
	texts, textsErr := p.Store.Read.QueryVersion.Query().Where(queryversion.AccountID(acc.ID)).Order(queryversion.ByID()).All(ctx)
	tokens, tokensErr := p.accounts.DownloadTokens(ctx, acc)
	applications, applicationsErr := p.accounts.Grants(ctx, acc)
	customer, customerErr := p.Billing.Customer(ctx, acc)
	if err := errors.Join(keysErr, applicationsErr, daysErr, callsErr, sessionsErr, emailsErr, endpointsErr, queriesErr, textsErr, tokensErr, customerErr); err != nil {
		return err
	}
	data := object{
		"account": object{"email": acc.Email, "plan": acc.Plan, "handle": acc.Handle, "language": acc.Language, "created_at": acc.CreatedAt.UTC()},
		"keys": convert(keys, func(k *ent.APIKey) object {
			return object{"id": k.ID, "name": k.Name, "created_at": k.CreatedAt.UTC(), "last_used_at": k.LastUsedAt, "revoked_at": k.RevokedAt}
		}),
		"usage": convert(days, func(u auth.DayUsage) object { return object{"day": u.Day, "requests": u.Requests} }),
		"usage_by_endpoint": convert(calls, func(u *ent.Usage) object {
			return object{"day": u.Day, "key": u.Key, "endpoint": u.Endpoint, "requests": u.Requests}
		}),
		"sessions": convert(sessions, func(s *ent.Session) object {
			return object{"created_at": s.CreatedAt.UTC(), "expires_at": s.ExpiresAt.UTC(), "user_agent": s.UserAgent}
		}),
		"messages": convert(emails, exportEmail),
		"webhooks": endpoints,
		"saved_queries": convert(queries, func(q *saved.Query) object {
			return object{"name": q.Name, "version": q.Hash, "title": q.Title, "description": q.Description, "chart": q.Chart, "public": q.Public, "created_at": q.CreatedAt.UTC(), "updated_at": q.UpdatedAt.UTC()}
		}),
		"query_versions": convert(texts, func(v *ent.QueryVersion) object {
			return object{"version": v.Hash, "text": v.Text, "public": v.Public, "created_at": v.CreatedAt.UTC()}
		}),
		"download_tokens": convert(tokens, func(t *ent.DownloadToken) object {
			return object{"name": t.Name, "created_at": t.CreatedAt.UTC(), "last_used_at": t.LastUsedAt}
		}),
		"applications": convert(applications, func(g auth.Grant) object {
			used := &g.LastUsedAt
			if used.IsZero() {
				used = nil
			}
			return object{"id": g.UsageKey(), "name": g.ClientName, "host": g.ClientHost, "resource": g.Resource, "private_queries": g.PrivateQueries, "created_at": g.CreatedAt, "last_used_at": used}
		}),
		"billing": nil,
	}
	if customer != nil {
		data["billing"] = object{
			"customer": customer.ID, "email": customer.Email, "subscription": customer.Subscription, "status": customer.Status,
			"period_end": customer.PeriodEnd, "cancels_at_period_end": customer.Cancels,
		}
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", `attachment; filename="account.json"`)
	_ = json.MarshalWrite(v.w, data, json.Deterministic(true), jsontext.WithIndent("  ")) // fails only if the client has disconnected
	return nil
}

// exportEmail includes the network only if the email was used: otherwise somebody
// else may have requested it.
func exportEmail(c *ent.Confirmation) object {
	email := object{"purpose": c.Purpose, "email": c.Email, "created_at": c.CreatedAt.UTC(), "used_at": c.UsedAt}
	if c.UsedAt != nil && c.Sender != "" {
		email["network"] = c.Sender
	}
	return email
}

func (p *Portal) exportEndpoints(v *visit) (exported []object, err error) {
	endpoints, err := p.Webhooks.List(v.Context(), v.account)
	for _, e := range endpoints {
		attempts, more, err := p.Webhooks.Attempts(v.Context(), e, webhook.AttemptsQuery{Limit: maxExportedAttempts})
		if err != nil {
			return nil, err
		}
		filter := webhook.FilterOf(e)
		endpoint := object{
			"id": e.ID, "url": e.URL, "types": e.Types, "categories": filter.Categories, "tools": filter.Tools, "batches": e.Batches, "state": e.State, "created_at": e.CreatedAt.UTC(),
			"attempts": convert(attempts, func(a *ent.Attempt) object {
				return object{
					"event": webhook.MessageID(a), "type": a.Type, "number": a.Number, "at": a.At.UTC(), "status": a.Status, "took_ms": a.TookMs,
					"response": a.Response, "delivered": a.Delivered,
				}
			}),
		}
		if e.DisabledReason != "" {
			endpoint["disabled_reason"] = e.DisabledReason
		}
		if more {
			endpoint["more_attempts"] = true
		}
		exported = append(exported, endpoint)
	}
	return exported, err
}

func convert[From any](rows []From, to func(From) object) (converted []object) {
	for _, row := range rows {
		converted = append(converted, to(row))
	}
	return converted
}
