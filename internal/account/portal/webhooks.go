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

// hooksPage is the data of the page of webhooks.
type hooksPage struct {
	Endpoints  []*ent.Endpoint
	Most       int
	Pro        bool
	Types      []choice
	URL        string // as it was typed, where it was refused
	Categories string
}

// choice is a box to tick.
type choice struct {
	Name   string
	Chosen bool
}

func (p *Portal) showHooks(v *visit) error { return p.showHooksWith(v, webhook.Wish{}, nil) }

func (p *Portal) showHooksWith(v *visit, typed webhook.Wish, wrong error) error {
	all, err := p.Hooks.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := hooksPage{Endpoints: all, Most: webhook.MostEndpoints, Pro: mayHaveHooks(v.account), URL: typed.URL, Categories: strings.Join(typed.Categories, " ")}
	for _, name := range journal.Events {
		data.Types = append(data.Types, choice{name, slices.Contains(typed.Types, name)})
	}
	return p.show(v, "webhooks", data, wrong)
}

func mayHaveHooks(account *ent.Account) bool { return auth.Plan(account.Plan).Terms().Webhooks }

// hookSecret is the data of the page that shows a secret, once.
type hookSecret struct {
	Endpoint *ent.Endpoint
	Secret   string
	Rotated  bool
}

func (p *Portal) addHook(v *visit) error {
	wish := webhook.Wish{
		URL: strings.TrimSpace(v.PostFormValue("url")), Types: v.PostForm["type"],
		Categories: strings.FieldsFunc(v.PostFormValue("categories"), func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\r' || r == '\t' }),
	}
	made, err := p.Hooks.Add(v.Context(), v.account, wish)
	if err != nil {
		return p.showHooksWith(v, wish, err)
	}
	return p.show(v, "hooksecret", hookSecret{Endpoint: made, Secret: made.Secret}, nil)
}

// hookPage is the data of the page of one endpoint.
type hookPage struct {
	*ent.Endpoint
	Pro       bool
	Attempts  []*ent.Attempt
	Failed    bool // only those that did not arrive are shown
	Paged     bool // there are newer ones than those
	Older     int  // what older ones come before; 0 for none
	Waiting   int
	LeftAlone bool         // its receiver asked for time
	Tried     *ent.Attempt // what a test has just come to
	Since     string
}

// shownAttempts is how many of the last 30 days' attempts are on one page.
const shownAttempts = 100

// eventID names an attempt's event, as its receiver knows it.
func eventID(number int) string {
	if number == 0 {
		return ""
	}
	return (&journal.Event{Number: number}).ID()
}

func (p *Portal) showHook(v *visit) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	return p.showHookWith(v, e, nil, nil)
}

func (p *Portal) showHookWith(v *visit, e *ent.Endpoint, tried *ent.Attempt, wrong error) error {
	query := attemptsAsked(v)
	attempts, older, err := p.Hooks.Attempts(v.Context(), e, query)
	if err != nil {
		return err
	}
	waiting, err := p.Hooks.Waiting(v.Context(), e)
	if err != nil {
		return err
	}
	data := hookPage{Endpoint: e, Pro: mayHaveHooks(v.account), Attempts: attempts, Failed: query.Failed, Paged: query.Before > 0, Waiting: waiting,
		LeftAlone: e.NotBefore != nil && p.now().Before(*e.NotBefore), Tried: tried, Since: p.now().UTC().Add(-24 * time.Hour).Format(localTime)}
	if older {
		data.Older = attempts[len(attempts)-1].ID
	}
	return p.show(v, "webhook", data, wrong)
}

// attemptsAsked is what the page's address says to show. What makes no sense
// there is as if it were not.
func attemptsAsked(v *visit) webhook.AttemptsQuery {
	asked := v.URL.Query()
	query := webhook.AttemptsQuery{Failed: asked.Get("failed") != "", Most: shownAttempts}
	if before, err := strconv.Atoi(asked.Get("before")); err == nil && before > 0 {
		query.Before = before
	}
	return query
}

// hookOf is the endpoint that the address names, if it is the visitor's own.
func (p *Portal) hookOf(v *visit) (*ent.Endpoint, error) {
	id, err := strconv.Atoi(v.PathValue("id"))
	if err != nil {
		return nil, problem.New(problem.NotFound, "There is no such endpoint.")
	}
	return p.Hooks.Find(v.Context(), v.account, id)
}

func (p *Portal) testHook(v *visit) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	if !mayHaveHooks(v.account) {
		return p.showHookWith(v, e, nil, problem.New(problem.Forbidden, "Webhooks are part of the Pro plan."))
	}
	tried, err := p.Hooks.Test(v.Context(), e)
	var limit *webhook.TestLimitError
	if errors.As(err, &limit) {
		v.w.Header().Set("Retry-After", strconv.Itoa(limit.Seconds()))
		return p.showHookWith(v, e, nil, err)
	}
	if err != nil {
		return err
	}
	return p.showHookWith(v, e, tried, nil)
}

func (p *Portal) rotateHook(v *visit) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	secret, err := p.Hooks.Rotate(v.Context(), e)
	if err != nil {
		return err
	}
	return p.show(v, "hooksecret", hookSecret{Endpoint: e, Secret: secret, Rotated: true}, nil)
}

// localTime is how browsers send the time of a field, here in UTC.
const localTime = "2006-01-02T15:04"

// replayHook sends one event again, or all since a time.
func (p *Portal) replayHook(v *visit) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	if id := strings.TrimSpace(v.PostFormValue("event")); id != "" {
		err = p.Hooks.Replay(v.Context(), e, id)
	} else if since, wrong := time.Parse(localTime, v.PostFormValue("since")); wrong != nil {
		err = problem.New(problem.BadInput, "Name an event, or a time such as 2026-11-15T08:00.")
	} else {
		err = p.Hooks.ReplaySince(v.Context(), e, since)
	}
	if err != nil {
		return p.showHookWith(v, e, nil, err)
	}
	return p.redirect(v, hookPath(e)+"?done=replayed")
}

func hookPath(e *ent.Endpoint) string { return fmt.Sprintf("/account/webhooks/%d", e.ID) }

// pauseHook, resumeHook and removeHook change an endpoint and go back.
func (p *Portal) pauseHook(v *visit) error {
	return p.changeHook(v, p.Hooks.Pause, "paused")
}

func (p *Portal) resumeHook(v *visit) error {
	return p.changeHook(v, p.Hooks.Resume, "resumed")
}

func (p *Portal) changeHook(v *visit, change func(context.Context, *ent.Endpoint) error, done string) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	if err := change(v.Context(), e); err != nil {
		return err
	}
	return p.redirect(v, hookPath(e)+"?done="+done)
}

func (p *Portal) removeHook(v *visit) error {
	e, err := p.hookOf(v)
	if err != nil {
		return err
	}
	if err := p.Hooks.Remove(v.Context(), e); err != nil {
		return err
	}
	return p.redirect(v, "/account/webhooks?done=removed")
}
