package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/notify/webhook"
)

// Webhooks groups the commands about webhook endpoints.
type Webhooks struct {
	List    webhooksList    `cmd:"" help:"List endpoints."`
	Add     webhooksAdd     `cmd:"" help:"Add an endpoint and print its secret, which is shown only once."`
	Batches webhooksBatches `cmd:"" help:"Turn batches of up to 100 events per request on or off."`
	Test    webhooksTest    `cmd:"" help:"Send a test event to an endpoint and print the response. An account can send 10 per minute."`
	Replay  webhooksReplay  `cmd:"" help:"Resend an event or batch, or all events since a time."`
	Disable webhooksDisable `cmd:"" help:"Stop sending events to an endpoint."`
	Resume  webhooksResume  `cmd:"" help:"Resume a paused or disabled endpoint. Events published from now on are sent; use replay for earlier ones."`
}

type endpointArgument struct {
	ID int `arg:"" help:"ID of the endpoint, as shown by palmares webhooks list."`
}

// ProvideEndpoint lets a Run method take the endpoint as a parameter.
func (a *endpointArgument) ProvideEndpoint(ctx context.Context, hooks *webhook.Webhooks) (*ent.Endpoint, error) {
	return hooks.Find(ctx, nil, a.ID)
}

type webhooksList struct {
	Email string `arg:"" optional:"" help:"Email address of an account, to list only its endpoints."`
}

func (c *webhooksList) Run(ctx context.Context, accounts *auth.Accounts, hooks *webhook.Webhooks, term Terminal) error {
	var owner *ent.Account
	if c.Email != "" {
		var err error
		if owner, err = accounts.Find(ctx, c.Email); err != nil {
			return err
		}
	}
	all, err := hooks.List(ctx, owner)
	if err != nil {
		return err
	}
	return printTable(term.Out, "id\taccount\tstate\tfailures\turl\tevents\tcategories\ttools\tbatches", all, func(e *ent.Endpoint) string {
		owner := ""
		if e.Edges.Account != nil { // it may have just been deleted
			owner = e.Edges.Account.Email
		}
		filter := webhook.FilterOf(e)
		categories, tools := orAll(filter.Categories), strings.Join(filter.Tools, ",")
		if len(filter.Categories) == 0 && len(filter.Tools) > 0 {
			categories = ""
		}
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%t", e.ID, owner, e.State, e.Failures, e.URL, orAll(e.Types), categories, tools, e.Batches)
	})
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ",")
}

type webhooksAdd struct {
	emailArgument
	URL        string   `arg:"" help:"HTTPS URL to send events to."`
	Events     []string `help:"Event types to send. Default: all." placeholder:"TYPE,…"`
	Categories []string `help:"Categories to send events about. Default: all." placeholder:"CATEGORY,…"`
	Tools      []string `help:"Tools to send events about, in addition to those of the categories. Default: all." placeholder:"SLUG,…"`
	Batches    bool     `help:"Send up to 100 events in one request."`
}

func (c *webhooksAdd) Run(ctx context.Context, owner *ent.Account, hooks *webhook.Webhooks, term Terminal) error {
	endpoint, err := hooks.Add(ctx, owner, webhook.NewEndpoint{URL: c.URL, Types: c.Events, Filter: webhook.Filter{Categories: c.Categories, Tools: c.Tools}, Batches: c.Batches})
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Err, "Endpoint %d was added. Save its secret, which is shown only once:\n", endpoint.ID)
	fmt.Fprintln(term.Out, endpoint.Secret)
	return nil
}

type webhooksBatches struct {
	endpointArgument
	Choice string `arg:"" enum:"on,off" help:"on or off."`
}

func (c *webhooksBatches) Run(ctx context.Context, hooks *webhook.Webhooks, endpoint *ent.Endpoint, term Terminal) error {
	err := hooks.SetBatches(ctx, endpoint, c.Choice == "on")
	return term.done(err, "Batches are %s for endpoint %d.", c.Choice, c.ID)
}

type webhooksTest struct{ endpointArgument }

func (c *webhooksTest) Run(ctx context.Context, hooks *webhook.Webhooks, endpoint *ent.Endpoint, term Terminal) error {
	attempt, err := hooks.Test(ctx, endpoint)
	if err != nil {
		return err
	}
	if !attempt.Delivered {
		return fmt.Errorf("the test event was not delivered: %s", describeResponse(attempt))
	}
	fmt.Fprintf(term.Out, "The test event was delivered: %s, in %d ms.\n", describeResponse(attempt), attempt.TookMs)
	return nil
}

func describeResponse(attempt *ent.Attempt) string {
	if attempt.Status == 0 {
		return attempt.Response
	}
	return strings.TrimSpace(fmt.Sprintf("status %d %s", attempt.Status, attempt.Response))
}

type webhooksReplay struct {
	endpointArgument
	Event string    `help:"ID of the event or batch to resend." xor:"what" required:"" placeholder:"ID"`
	Since time.Time `help:"Resend all events since this time, such as 2026-11-15T08:00:00Z." xor:"what" required:"" placeholder:"TIME"`
}

// Run schedules events to be sent again by a running server.
func (c *webhooksReplay) Run(ctx context.Context, hooks *webhook.Webhooks, endpoint *ent.Endpoint, term Terminal) error {
	var err error
	if c.Event != "" {
		err = hooks.Replay(ctx, endpoint, c.Event)
	} else {
		err = hooks.ReplaySince(ctx, endpoint, c.Since)
	}
	return term.done(err, "Scheduled. A running server sends the events within seconds.")
}

type webhooksDisable struct {
	endpointArgument
	Reason string `help:"Reason shown to the owner. Default: an operator disabled it." placeholder:"TEXT"`
}

// disabledByOperator is translated on the page of the endpoint.
const disabledByOperator lang.Message = "an operator disabled it"

func (c *webhooksDisable) Run(ctx context.Context, hooks *webhook.Webhooks, endpoint *ent.Endpoint, term Terminal) error {
	err := hooks.Disable(ctx, endpoint, cmp.Or(c.Reason, string(disabledByOperator)))
	return term.done(err, "Endpoint %d is disabled.", c.ID)
}

type webhooksResume struct{ endpointArgument }

func (c *webhooksResume) Run(ctx context.Context, hooks *webhook.Webhooks, endpoint *ent.Endpoint, term Terminal) error {
	const resumed = "Endpoint %d is active. Events published from now on are sent to it; use replay for earlier ones."
	return term.done(hooks.Resume(ctx, endpoint), resumed, c.ID)
}
