package browser

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Go goes to an address, and waits until everything is there.
func (p *Page) Go(address string) {
	p.t.Helper()
	var loader cdp.LoaderID
	p.do("go to "+address, func(ctx context.Context, t *chromedp.Target) error {
		result, err := cdp.Call(ctx, t, page.Navigate, page.NavigateParams{URL: address})
		if err == nil && result.ErrorText != "" {
			err = errors.New(result.ErrorText)
		}
		loader = result.LoaderID
		return err
	})
	if loader == "" {
		return // within the document
	}
	p.until("load "+address, func(context.Context) (bool, error) { return p.watch.loaded(loader), nil })
}

// How long after a click, say, a navigation may start: one that nobody expects,
// and one that is to come unless a script thinks better of it later.
const (
	grace     = 100 * time.Millisecond
	longGrace = 30 * time.Second
)

// following does something, and waits for the navigation it starts, if any.
// Leads is whether it is to start one.
func (p *Page) following(what string, leads bool, action func(context.Context, *chromedp.Target) error) {
	p.t.Helper()
	before := p.watch.navigations()
	p.do(what, action)
	prevented, err := p.try(p.evaluate("window.prevented === true")) // a busy page answers once it has dealt with it
	patience := grace
	if leads && (err != nil || string(prevented) != "true") {
		patience = longGrace
	}
	start := time.Now()
	p.until(what+" and load", func(context.Context) (bool, error) {
		if p.watch.navigations() == before {
			return time.Since(start) > patience, nil
		}
		over, failure := p.watch.last()
		if failure != "" {
			return false, errors.New(failure)
		}
		return over, nil
	})
}
