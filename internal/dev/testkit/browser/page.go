package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is a tab. What it cannot do fails its test at once; what was wrong with
// the pages it showed fails it when it ends.
type Page struct {
	t     testing.TB
	ctx   context.Context
	look  Look
	watch *watch
	id    string

	// Limit is how long an element is waited for, minutes if not set.
	Limit time.Duration
}

func newPage(t testing.TB, ctx context.Context, end context.CancelFunc, look Look) *Page {
	t.Helper()
	p := &Page{t: t, ctx: ctx, look: look, Limit: limit}
	err := within(end, func() error {
		return chromedp.Do(ctx, chromedp.Func(look.apply))
	})
	if err != nil {
		end()
		t.Fatalf("open a tab: %v", err)
	}
	p.watch = startWatch(ctx)
	p.id = string(p.watch.frame)
	t.Cleanup(func() {
		// What happened before this answer was told before it.
		_, err := p.try(p.evaluate("0"))
		failed := t.Failed()
		if failed && err == nil {
			p.keepPicture()
		}
		end()
		if err != nil {
			t.Errorf("the page is gone: %v", err)
		}
		complaints := p.watch.complaints()
		if failed {
			p.keepConsole(complaints)
		}
		for _, complaint := range complaints {
			t.Error(complaint)
		}
	})
	return p
}

// In opens another tab for the same visitor, who sees it in another way.
func (p *Page) In(t testing.TB, look Look) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	return newPage(t, ctx, end, look)
}

// URL is the address of what is shown.
func (p *Page) URL() string {
	p.t.Helper()
	frame := p.frame()
	return frame.URL + frame.URLFragment
}

// Status is that of the document that is shown.
func (p *Page) Status() int {
	p.t.Helper()
	loader := p.frame().LoaderID
	p.until("learn the status", func(context.Context) (bool, error) { return p.watch.statusOf(loader) != 0, nil })
	return p.watch.statusOf(loader)
}

// Text is what can be read in an element, which may take a moment to appear.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.element("read", selector, "element.innerText.trim()", &text)
	return text
}

// Shows waits until something can be read in an element. Editors write their
// spaces as ones that do not break.
func (p *Page) Shows(selector, want string) {
	p.t.Helper()
	read := "(document.querySelector(" + quote(selector) + ")?.innerText ?? '').replaceAll('\u00a0', ' ')"
	p.until("read "+quote(want)+" in "+selector, func(ctx context.Context) (bool, error) {
		text, err := chromedp.Run(ctx, p.evaluate(read))
		var said string
		if err == nil {
			err = json.Unmarshal(text, &said)
		}
		if err != nil {
			return false, nil // between two documents
		}
		if !strings.Contains(said, want) {
			return false, notYet{fmt.Errorf("got %.2000q", said)}
		}
		return true, nil
	})
}

// Value is that of a field.
func (p *Page) Value(selector string) (value string) {
	p.t.Helper()
	p.element("read", selector, "element.value", &value)
	return value
}

// Exists tells whether there is such an element now.
func (p *Page) Exists(selector string) (exists bool) {
	p.t.Helper()
	p.Eval("document.querySelector("+quote(selector)+") !== null", &exists)
	return exists
}

// Eval is what an expression comes to, or what it promises. Into may be nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	value, err := p.try(p.evaluate(expression))
	if err == nil && into != nil {
		err = json.Unmarshal(value, into)
	}
	if err != nil {
		p.fatal("evaluate "+expression, err)
	}
}

// element waits for one to do something with, and evaluates an expression of
// it. An expression that throws is evaluated again: the page may not be ready.
func (p *Page) element(verb, selector, expression string, into any) {
	p.t.Helper()
	p.until(verb+" "+selector, func(ctx context.Context) (bool, error) { return p.find(ctx, selector, expression, into) })
}

// find evaluates an expression of an element, if it is there.
func (p *Page) find(ctx context.Context, selector, expression string, into any) (found bool, err error) {
	search := "(element => element && {found: " + expression + "})(document.querySelector(" + quote(selector) + "))"
	value, err := chromedp.Run(ctx, p.evaluate(search))
	var exception *chromedp.ExceptionError
	if errors.As(err, &exception) {
		err = inOneLine(exception)
		if strings.HasPrefix(err.Error(), "SyntaxError") { // which no waiting mends
			return false, err
		}
		return false, notYet{err}
	}
	if err != nil || string(value) == "null" {
		return false, nil // not there yet, or between two documents
	}
	return true, json.Unmarshal(value, &struct {
		Found any `json:"found"`
	}{into})
}

// notYet is why something could not be done yet.
type notYet struct{ error }

// inOneLine is what an exception says, without the stack, which is ours.
func inOneLine(exception *chromedp.ExceptionError) error {
	if exception.Exception == nil {
		return exception
	}
	line, _, _ := strings.Cut(exception.Exception.Description, "\n")
	return errors.New(line)
}

func (p *Page) evaluate(expression string) chromedp.Action[[]byte] {
	return p.evaluateIn(0, expression)
}

// evaluateIn is for a world of one's own, beside the page's scripts.
func (p *Page) evaluateIn(world runtime.ExecutionContextID, expression string) chromedp.Action[[]byte] {
	return chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise, func(params *runtime.EvaluateParams) {
		params.ContextID = world
	})
}

// frame is the state of the tab.
func (p *Page) frame() *cdp.Frame {
	p.t.Helper()
	var frame *cdp.Frame
	p.do("see where it is", func(ctx context.Context, t *chromedp.Target) error {
		tree, err := cdp.Call(ctx, t, page.GetFrameTree, cdp.Empty{})
		if err == nil {
			frame = tree.FrameTree.Frame
		}
		return err
	})
	return frame
}

// do does something in the time there is.
func (p *Page) do(what string, action func(context.Context, *chromedp.Target) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Func(action)); err != nil {
		p.fatal(what, err)
	}
}

func (p *Page) try(action chromedp.Action[[]byte]) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// until looks again and again, in the time there is, and at least once.
func (p *Page) until(what string, ready func(context.Context) (bool, error)) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	for deadline := time.Now().Add(p.Limit); ; time.Sleep(5 * time.Millisecond) {
		is, err := ready(ctx)
		if is && err == nil {
			return
		}
		if err != nil && !errors.As(err, &notYet{}) {
			p.fatal(what, err)
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.fatal(what, cmp.Or(err, p.ctx.Err(), fmt.Errorf("it is not there after %s", p.Limit)))
		}
	}
}

// fatal says where it was that something could not be done.
func (p *Page) fatal(what string, err error) {
	p.t.Helper()
	address, other := p.try(p.evaluate("location.href"))
	if other != nil {
		address = []byte("a page that does not answer")
	}
	var exception *chromedp.ExceptionError
	if errors.As(err, &exception) {
		err = inOneLine(exception)
	}
	p.t.Fatalf("%s on %s: %v", what, strings.Trim(string(address), `"`), err)
}

// quote makes a JavaScript literal.
func quote(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}
