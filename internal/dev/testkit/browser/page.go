package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Page is a tab. An action that fails ends the test; errors in the console and
// the like fail the test when it ends.
type Page struct {
	t      testing.TB
	ctx    context.Context
	look   Look
	watch  *watch
	status int // of the current document

	// Limit is how long to wait for an element.
	Limit time.Duration
}

func newPage(t testing.TB, ctx context.Context, end context.CancelFunc, look Look) *Page {
	t.Helper()
	p := &Page{t: t, ctx: ctx, look: look, Limit: limit}
	timer := time.AfterFunc(limit, end)
	defer timer.Stop()
	if err := chromedp.Do(ctx, look.steps()...); err != nil {
		end()
		t.Fatalf("open a tab: %v", err)
	}
	p.watch = startWatch(ctx)
	t.Cleanup(func() {
		// All events so far arrive before this result.
		_, err := try(p, evaluate("0"))
		failed := t.Failed()
		if failed && err == nil {
			if image, err := try(p, fullScreenshot); err == nil {
				p.saveFailure("screenshot", ".png", image)
			}
		}
		end()
		if err != nil {
			t.Errorf("the page does not respond: %v", err)
		}
		complaints := p.watch.complaints()
		if failed {
			p.saveFailure("console log", ".txt", []byte(strings.Join(complaints, "\n")+"\n"))
		}
		for _, complaint := range complaints {
			t.Error(complaint)
		}
	})
	return p
}

// OpenTab opens another tab for the same visitor, with another Look.
func (p *Page) OpenTab(t testing.TB, look Look) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	return newPage(t, ctx, end, look)
}

// Change gives the visitor's browser another Look, without reloading the page.
func (p *Page) Change(look Look) {
	p.t.Helper()
	for _, step := range look.steps() {
		do(p, "change the look", step)
	}
	p.look = look
}

// Go navigates to a URL and waits until the page is loaded.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.load("go to "+address, chromedp.NavigateResponse(address))
}

// Follow clicks an element that opens another page, and waits until that is
// loaded.
func (p *Page) Follow(selector string) {
	p.t.Helper()
	p.follow("follow "+selector, func() { p.Click(selector) })
}

// FollowKey presses a key that opens another page, and waits until that is
// loaded.
func (p *Page) FollowKey(key string) {
	p.t.Helper()
	p.follow("follow the key "+quote(key), func() { p.Press(key) })
}

func (p *Page) follow(what string, action func()) {
	p.t.Helper()
	p.load(what, func(ctx context.Context, _ *chromedp.Target) (*network.Response, error) {
		return chromedp.RunResponse(ctx, chromedp.Func(func(context.Context, *chromedp.Target) error {
			action()
			return nil
		}))
	})
}

func (p *Page) load(what string, open chromedp.Action[*network.Response]) {
	p.t.Helper()
	if response := do(p, what, open); response != nil { // not within the document
		p.status = int(response.Status)
		p.watch.failed[response.URL] = p.watch.failed[response.URL] || p.status >= 400
	}
}

// URL returns the URL of the current document.
func (p *Page) URL() (address string) {
	p.t.Helper()
	p.Eval("location.href", &address)
	return address
}

// Status returns the HTTP status of the current document.
func (p *Page) Status() int { return p.status }

// Text waits for an element and returns its visible text.
func (p *Page) Text(selector string) (text string) {
	p.t.Helper()
	p.element("read", selector, "element.innerText.trim()", &text)
	return text
}

// WaitForText waits until an element's text contains want. Code editors use
// non-breaking spaces, which count as spaces.
func (p *Page) WaitForText(selector, want string) {
	p.t.Helper()
	p.element("read "+quote(want)+" in", selector, `(() => {
		const text = element.innerText.replaceAll("\u00a0", " ");
		if (!text.includes(`+quote(strings.ReplaceAll(want, "\u00a0", " "))+`)) throw new Error("got " + JSON.stringify(text.slice(0, 2000)));
	})()`, nil)
}

// Exists reports whether there is such an element now.
func (p *Page) Exists(selector string) (exists bool) {
	p.t.Helper()
	p.Eval("document.querySelector("+quote(selector)+") !== null", &exists)
	return exists
}

// Focused describes the focused element by its id and name, or else by its text,
// such as input#email.email or a "Sign in".
func (p *Page) Focused() (description string) {
	p.t.Helper()
	p.Eval(`(element => {
		const tag = element.tagName.toLowerCase(), name = element.getAttribute("name");
		if (tag === "body") return tag;
		if (element.id || name) return tag + (element.id && "#" + element.id) + (name ? "." + name : "");
		return tag + " " + JSON.stringify((element.innerText || element.getAttribute("aria-label") || "").trim().slice(0, 80));
	})(document.activeElement ?? document.body)`, &description)
	return description
}

// Fill replaces the content of a field by typing. Other fields, such as selects
// and dates, have their value set.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	var typed bool
	p.element("fill", selector, `(() => {
		if (element.disabled || element.readOnly) throw new Error("the field cannot be changed");
		element.focus();
		if (document.activeElement !== element) throw new Error("the field does not accept the focus");
		if (element.matches("textarea, input:is([type=text], [type=email], [type=password], [type=search], [type=tel], [type=url], [type=number], :not([type]))")) {
			element.select();
			return true;
		}
		element.value = `+quote(text)+`;
		if (element.value !== `+quote(text)+`) throw new Error("the field does not accept " + `+quote(text)+`);
		element.dispatchEvent(new Event("input", {bubbles: true}));
		element.dispatchEvent(new Event("change", {bubbles: true}));
		return false;
	})()`, &typed)
	if !typed {
		return
	}
	enter := call(input.InsertText, input.InsertTextParams{Text: text})
	if text == "" {
		enter = chromedp.KeyEvent(kb.Delete)
	}
	do(p, "fill "+selector, enter)
}

// Press presses a key, such as "a" or one of package kb. Use FollowKey for a key
// that opens another page.
func (p *Page) Press(key string) {
	p.t.Helper()
	do(p, "press "+quote(key), chromedp.KeyEvent(key))
}

// Click clicks an element where it is visible. Use Follow for an element that
// opens another page.
func (p *Page) Click(selector string) {
	p.t.Helper()
	for deadline := time.Now().Add(p.Limit); ; {
		var at struct{ X, Y float64 }
		p.element("click", selector, clickable, &at)
		do(p, "click "+selector, chromedp.MouseClickXY(at.X, at.Y))
		missed, err := try(p, evaluate("(window.clickGuard?.end(), window.clickGuard?.missed === true)"))
		if err != nil || string(missed) != "true" { // an error: the page is being replaced
			return
		}
		if time.Now().After(deadline) {
			p.fatal("click "+selector, errors.New("the element moves whenever it is clicked"))
		}
	}
}

//go:embed clickable.js
var clickable string

// Eval evaluates an expression, awaits it if it is a promise, and decodes the
// result into a pointer, which may be nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	value, err := try(p, evaluate(expression))
	if err == nil && into != nil {
		err = json.Unmarshal(value, into)
	}
	if err != nil {
		p.fatal("evaluate "+expression, err)
	}
}

// element waits for an element and evaluates an expression of it. An expression
// that throws is retried: the page may not be ready.
func (p *Page) element(verb, selector, expression string, into any) {
	p.t.Helper()
	what := verb + " " + selector
	search := "(element => element && {found: " + expression + "})(document.querySelector(" + quote(selector) + "))"
	for deadline := time.Now().Add(p.Limit); ; time.Sleep(5 * time.Millisecond) {
		value, err := try(p, evaluate(search))
		switch exception := new(chromedp.ExceptionError); {
		case err == nil && string(value) != "null":
			if err := json.Unmarshal(value, &struct{ Found any }{into}); err != nil {
				p.fatal(what, err)
			}
			return
		case !errors.As(err, &exception):
			err = errors.New("not found") // or between two documents
		case strings.HasPrefix(messageOf(exception), "SyntaxError"): // waiting does not help
			p.fatal(what, err)
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.fatal(what, err)
		}
	}
}

func evaluate(expression string) chromedp.Action[[]byte] {
	return chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise)
}

// do runs an action, and ends the test if it fails.
func do[R any](p *Page, what string, action chromedp.Action[R]) R {
	p.t.Helper()
	result, err := try(p, action)
	if err != nil {
		p.fatal(what, err)
	}
	return result
}

func try[R any](p *Page, action chromedp.Action[R]) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// fatal ends the test with the failed action and the page's URL.
func (p *Page) fatal(what string, err error) {
	p.t.Helper()
	address, other := try(p, chromedp.Location())
	if other != nil {
		address = "a page that does not respond"
	}
	message := err.Error()
	if exception := new(chromedp.ExceptionError); errors.As(err, &exception) {
		message = messageOf(exception)
	}
	p.t.Fatalf("%s on %s: %s", what, address, message)
}

// messageOf returns an exception's message without its stack.
func messageOf(exception *chromedp.ExceptionError) string {
	if exception.Exception == nil {
		return exception.Error()
	}
	line, _, _ := strings.Cut(exception.Exception.Description, "\n")
	return line
}

// quote returns a JavaScript literal.
func quote(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}
