package portal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/category"
	"palmares/internal/core/problem"
	"palmares/internal/notify/webhook"
)

type endpointsPage struct {
	Endpoints []*ent.Endpoint
	Limit     int
	Choices   eventChoices
}

// eventChoices are the inputs for what an endpoint receives.
type eventChoices struct {
	Form       webhook.NewEndpoint // the choices made
	Categories []*ent.Category
}

// choices returns the inputs with the values of a form. Categories that no longer exist are
// listed while they are chosen.
func (p *Portal) choices(v *visit, form webhook.NewEndpoint) (eventChoices, error) {
	rows, err := p.Store.Read.Category.Query().Order(category.ByID()).All(v.Context())
	for _, slug := range form.Categories {
		if !slices.ContainsFunc(rows, func(row *ent.Category) bool { return row.ID == slug }) {
			rows = append(rows, &ent.Category{ID: slug, Label: slug})
		}
	}
	return eventChoices{form, rows}, err
}

// spec reads the inputs of both forms.
func spec(v *visit) webhook.NewEndpoint {
	tools := strings.FieldsFunc(strings.ToLower(v.FormValue("tools")), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return webhook.NewEndpoint{
		Types: v.PostForm["type"], Filter: webhook.Filter{Categories: v.PostForm["category"], Tools: tools}, Batches: v.PostFormValue("batches") != "",
	}
}

func (p *Portal) showEndpoints(v *visit) error {
	endpoints, err := p.Webhooks.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	choices, err := p.choices(v, spec(v))
	if err != nil {
		return err
	}
	return p.show(v, "webhooks", endpointsPage{
		Endpoints: endpoints, Limit: webhook.MaxEndpoints, Choices: choices,
	})
}

func (p *Portal) addEndpoint(v *visit) error {
	wanted := spec(v)
	wanted.URL = strings.TrimSpace(v.PostFormValue("url"))
	added, err := p.Webhooks.Add(v.Context(), v.account, wanted)
	if err != nil {
		return p.showEndpoints(v.rejected(err))
	}
	return p.show(v, "secret", added)
}

func (p *Portal) endpoint(v *visit) (*ent.Endpoint, error) {
	id, _ := strconv.Atoi(v.PathValue("id")) // 0 if it is not a number, which is no endpoint's
	return p.Webhooks.Find(v.Context(), v.account, id)
}

type endpointPage struct {
	*ent.Endpoint
	Attempts  []*ent.Attempt
	Next      map[int]*time.Time // when events are sent again, by number
	Failed    bool               // only failed attempts are shown
	Paged     bool               // there are newer attempts
	Older     int                // id that older attempts precede; 0 if there are none
	Waiting   int
	Postponed bool         // the receiver requested a wait
	Tested    *ent.Attempt // result of a test event
	Since     string
	Choices   eventChoices
}

const (
	shownAttempts = 100
	localTime     = "2006-01-02T15:04" // format of datetime-local inputs, here in UTC
)

func (p *Portal) showEndpoint(v *visit, e *ent.Endpoint) error {
	return p.showEndpointForm(v, e, webhook.NewEndpoint{Types: e.Types, Filter: webhook.FilterOf(e), Batches: e.Batches})
}

// showEndpointForm shows an endpoint with a form that has the given settings.
func (p *Portal) showEndpointForm(v *visit, e *ent.Endpoint, form webhook.NewEndpoint) error {
	params := v.URL.Query()
	var tested *ent.Attempt
	if id, err := strconv.Atoi(params.Get("tested")); err == nil {
		if tested, err = p.Webhooks.TestResult(v.Context(), e, id); err != nil {
			return err
		}
	}
	choices, err := p.choices(v, form)
	if err != nil {
		return err
	}
	query := webhook.AttemptsQuery{Failed: params.Get("failed") != "", Limit: shownAttempts}
	if before, err := strconv.Atoi(params.Get("before")); err == nil && before > 0 {
		query.Before = before
	}
	attempts, older, attemptsErr := p.Webhooks.Attempts(v.Context(), e, query)
	next, nextErr := p.Webhooks.NextAttempts(v.Context(), e, attempts)
	waiting, waitingErr := p.Webhooks.PendingRetries(v.Context(), e)
	if err := errors.Join(attemptsErr, nextErr, waitingErr); err != nil {
		return err
	}
	data := endpointPage{
		Endpoint: e, Attempts: attempts, Failed: query.Failed, Paged: query.Before > 0, Waiting: waiting,
		Postponed: e.NotBefore != nil && p.now().Before(*e.NotBefore), Tested: tested, Since: cmp.Or(v.PostFormValue("since"), p.now().UTC().Add(-24*time.Hour).Format(localTime)),
		Choices: choices, Next: next,
	}
	if older {
		data.Older = attempts[len(attempts)-1].ID
	}
	return p.show(v, "webhook", data)
}

type attemptPage struct {
	*webhook.Details
	Endpoint    *ent.Endpoint
	Body        string // the payload, indented
	MaxAttempts int
}

func (p *Portal) showAttempt(v *visit, e *ent.Endpoint) error {
	id, err := strconv.Atoi(v.PathValue("attempt"))
	if err != nil {
		return problem.New(problem.NotFound, "This delivery attempt does not exist.")
	}
	details, err := p.Webhooks.Details(v.Context(), e, id)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if json.Indent(&body, details.Payload, "", "  ") != nil {
		body.Reset() // there is no payload
	}
	return p.show(v, "attempt", attemptPage{details, e, body.String(), webhook.MaxAttempts})
}

func (p *Portal) testEndpoint(v *visit, e *ent.Endpoint) error {
	if !auth.Plan(v.account.Plan).Terms().Webhooks {
		return p.showEndpoint(v.rejected(problem.New(problem.Forbidden, "Webhooks require the Pro plan.")), e)
	}
	tested, err := p.Webhooks.Test(v.Context(), e)
	if err != nil {
		return p.showEndpoint(v.rejected(err), e)
	}
	return p.redirect(v, fmt.Sprintf("/account/webhooks/%d?tested=%d", e.ID, tested.ID)) // so that reloading sends nothing
}

func (p *Portal) rotateSecret(v *visit, e *ent.Endpoint) error {
	rotated, err := p.Webhooks.Rotate(v.Context(), e)
	if err != nil {
		return err
	}
	return p.show(v, "secret", rotated)
}

func (p *Portal) updateEndpoint(v *visit, e *ent.Endpoint) error {
	if err := p.Webhooks.Update(v.Context(), e, spec(v)); err != nil {
		return p.showEndpointForm(v.rejected(err), e, spec(v))
	}
	return p.redirect(v, fmt.Sprintf("/account/webhooks/%d?done=saved", e.ID))
}

// replayEvents sends one event or batch again, or all events since a time.
func (p *Portal) replayEvents(v *visit, e *ent.Endpoint) (err error) {
	if id := strings.TrimSpace(v.PostFormValue("event")); id != "" {
		err = p.Webhooks.Replay(v.Context(), e, id)
	} else if since, invalid := time.Parse(localTime, v.PostFormValue("since")); invalid != nil {
		err = problem.New(problem.BadInput, "Enter an event ID or a time such as 2026-11-15T08:00.")
	} else {
		err = p.Webhooks.ReplaySince(v.Context(), e, since)
	}
	if err != nil {
		return p.showEndpoint(v.rejected(err), e)
	}
	return p.redirect(v, fmt.Sprintf("/account/webhooks/%d?done=replayed", e.ID))
}

// changeEndpoint returns a handler that changes an endpoint and redirects.
func changeEndpoint(change func(*webhook.Webhooks, context.Context, *ent.Endpoint) error, to string) handler {
	return with((*Portal).endpoint, func(p *Portal, v *visit, e *ent.Endpoint) error {
		if err := change(p.Webhooks, v.Context(), e); err != nil {
			return err
		}
		return p.redirect(v, strings.ReplaceAll(to, "{id}", strconv.Itoa(e.ID)))
	})
}
