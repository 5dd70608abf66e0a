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

// grace is how long after a click, say, a navigation may start.
const grace = 100 * time.Millisecond

// following does something, and waits for the navigation it starts, if any.
func (p *Page) following(what string, action func(context.Context, *chromedp.Target) error) {
	p.t.Helper()
	before := p.watch.navigations()
	p.do(what, action)
	_, _ = p.try(p.evaluate("0")) // a busy page answers once it has dealt with it
	start := time.Now()
	p.until(what+" and load", func(context.Context) (bool, error) {
		if p.watch.navigations() == before {
			return time.Since(start) > grace, nil
		}
		over, failure := p.watch.last()
		if failure != "" {
			return false, errors.New(failure)
		}
		return over, nil
	})
}
