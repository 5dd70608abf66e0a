package portal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
	"palmares/internal/notify/webhook"
)

type endpointsPage struct {
	Endpoints  []*ent.Endpoint
	Limit      int
	Pro        bool
	Types      []eventType
	URL        string // as typed in a rejected form
	Categories string
	Batches    bool
}

type eventType struct {
	Name    string
	Checked bool
}

func (p *Portal) showEndpoints(v *visit) error {
	endpoints, err := p.Webhooks.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := endpointsPage{
		Endpoints: endpoints, Limit: webhook.MaxEndpoints, Pro: includesWebhooks(v.account),
		URL: v.PostFormValue("url"), Categories: v.PostFormValue("categories"), Batches: wantsBatches(v),
	}
	for _, name := range journal.Events {
		data.Types = append(data.Types, eventType{name, slices.Contains(v.PostForm["type"], name)})
	}
	return p.show(v, "webhooks", data)
}

// wantsBatches reads the checkbox of both forms.
func wantsBatches(v *visit) bool { return v.PostFormValue("batches") != "" }

func includesWebhooks(acc *ent.Account) bool { return auth.Plan(acc.Plan).Terms().Webhooks }

type secretPage struct {
	Endpoint *ent.Endpoint
	Secret   string
	Rotated  bool
}

func (p *Portal) addEndpoint(v *visit) error {
	added, err := p.Webhooks.Add(v.Context(), v.account, webhook.NewEndpoint{
		URL: strings.TrimSpace(v.PostFormValue("url")), Types: v.PostForm["type"],
		Categories: strings.FieldsFunc(v.PostFormValue("categories"), func(r rune) bool { return strings.ContainsRune(" ,\n\r\t", r) }),
		Batches:    wantsBatches(v),
	})
	if err != nil {
		return v.reject(err, p.showEndpoints)
	}
	return p.show(v, "secret", secretPage{Endpoint: added, Secret: added.Secret})
}

// withEndpoint passes the endpoint in the path, if it belongs to the visitor.
func withEndpoint(handle func(*Portal, *visit, *ent.Endpoint) error) handler {
	return func(p *Portal, v *visit) error {
		id, err := strconv.Atoi(v.PathValue("id"))
		if err != nil {
			return problem.New(problem.NotFound, "This endpoint does not exist.")
		}
		endpoint, err := p.Webhooks.Find(v.Context(), v.account, id)
		if err != nil {
			return err
		}
		return handle(p, v, endpoint)
	}
}

type endpointPage struct {
	*ent.Endpoint
	Pro       bool
	Attempts  []*ent.Attempt
	Failed    bool // only failed attempts are shown
	Paged     bool // there are newer attempts
	Older     int  // id that older attempts precede; 0 if there are none
	Waiting   int
	Postponed bool         // the receiver requested a wait
	Tested    *ent.Attempt // result of a test event
	Since     string
}

const (
	shownAttempts = 100
	localTime     = "2006-01-02T15:04" // format of datetime-local inputs, here in UTC
)

func (p *Portal) showEndpoint(v *visit, e *ent.Endpoint) error { return p.showTested(v, e, nil) }

func (p *Portal) showTested(v *visit, e *ent.Endpoint, tested *ent.Attempt) error {
	params := v.URL.Query()
	query := webhook.AttemptsQuery{Failed: params.Get("failed") != "", Limit: shownAttempts}
	if before, err := strconv.Atoi(params.Get("before")); err == nil && before > 0 {
		query.Before = before
	}
	attempts, older, attemptsErr := p.Webhooks.Attempts(v.Context(), e, query)
	waiting, waitingErr := p.Webhooks.PendingRetries(v.Context(), e)
	if err := errors.Join(attemptsErr, waitingErr); err != nil {
		return err
	}
	data := endpointPage{
		Endpoint: e, Pro: includesWebhooks(v.account), Attempts: attempts, Failed: query.Failed, Paged: query.Before > 0, Waiting: waiting,
		Postponed: e.NotBefore != nil && p.now().Before(*e.NotBefore), Tested: tested, Since: p.now().UTC().Add(-24 * time.Hour).Format(localTime),
	}
	if older {
		data.Older = attempts[len(attempts)-1].ID
	}
	return p.show(v, "webhook", data)
}

func (p *Portal) testEndpoint(v *visit, e *ent.Endpoint) error {
	if !includesWebhooks(v.account) {
		v.invalid = problem.New(problem.Forbidden, "Webhooks require the Pro plan.")
		return p.showEndpoint(v, e)
	}
	tested, err := p.Webhooks.Test(v.Context(), e)
	if limit, reached := errors.AsType[*webhook.TestLimitError](err); reached {
		v.w.Header().Set("Retry-After", strconv.Itoa(limit.Seconds()))
		v.invalid = err
	} else if err != nil {
		return err
	}
	return p.showTested(v, e, tested)
}

func (p *Portal) rotateSecret(v *visit, e *ent.Endpoint) error {
	secret, err := p.Webhooks.Rotate(v.Context(), e)
	if err != nil {
		return err
	}
	return p.show(v, "secret", secretPage{Endpoint: e, Secret: secret, Rotated: true})
}

func (p *Portal) setBatches(v *visit, e *ent.Endpoint) error {
	if err := p.Webhooks.SetBatches(v.Context(), e, wantsBatches(v)); err != nil {
		return err
	}
	return p.redirect(v, fmt.Sprintf("/account/webhooks/%d?done=saved", e.ID))
}

// replayEvents sends one event or batch again, or all events since a time.
func (p *Portal) replayEvents(v *visit, e *ent.Endpoint) (err error) {
	if id := strings.TrimSpace(v.PostFormValue("event")); id != "" {
		err = p.Webhooks.Replay(v.Context(), e, id)
	} else if since, invalid := time.Parse(localTime, v.PostFormValue("since")); invalid != nil {
		err = problem.New(problem.BadInput, "Enter an event id or a time such as 2026-11-15T08:00.")
	} else {
		err = p.Webhooks.ReplaySince(v.Context(), e, since)
	}
	if err != nil {
		v.invalid = err
		return p.showEndpoint(v, e)
	}
	return p.redirect(v, fmt.Sprintf("/account/webhooks/%d?done=replayed", e.ID))
}

// changeEndpoint returns a handler that changes an endpoint and redirects.
func changeEndpoint(change func(*webhook.Webhooks, context.Context, *ent.Endpoint) error, to string) handler {
	return withEndpoint(func(p *Portal, v *visit, e *ent.Endpoint) error {
		if err := change(p.Webhooks, v.Context(), e); err != nil {
			return err
		}
		return p.redirect(v, strings.ReplaceAll(to, "{id}", strconv.Itoa(e.ID)))
	})
}
