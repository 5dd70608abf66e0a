package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Page is a tab. An action that fails ends the test; errors in the console and
// the like fail the test when it ends.
type Page struct {
	t     testing.TB
	ctx   context.Context
	look  Look
	watch *watch

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
		_, err := try(p, p.evaluate("0"))
		failed := t.Failed()
		if failed && err == nil {
			if image, err := try(p, chromedp.FullScreenshot(100)); err == nil {
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

// URL returns the address of the current document.
func (p *Page) URL() string {
	p.t.Helper()
	frame := p.frame()
	return frame.URL + frame.URLFragment
}

// Status returns the HTTP status of the current document.
func (p *Page) Status() int {
	p.t.Helper()
	loader := p.frame().LoaderID
	p.until("get the status", func(context.Context) error { return absentUnless(p.watch.statusOf(loader) != 0) })
	return p.watch.statusOf(loader)
}

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
		if (!text.includes(`+quote(want)+`)) throw new Error("got " + JSON.stringify(text.slice(0, 2000)));
	})()`, nil)
}

// Value waits for a field and returns its value.
func (p *Page) Value(selector string) (value string) {
	p.t.Helper()
	p.element("read", selector, "element.value", &value)
	return value
}

// Exists reports whether there is such an element now.
func (p *Page) Exists(selector string) (exists bool) {
	p.t.Helper()
	p.Eval("document.querySelector("+quote(selector)+") !== null", &exists)
	return exists
}

// Eval evaluates an expression, awaits it if it is a promise, and decodes the
// result into a pointer, which may be nil.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	value, err := try(p, p.evaluate(expression))
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
	p.until(what, func(ctx context.Context) error { return p.find(ctx, what, selector, expression, into) })
}

// find evaluates an expression of an element, or returns why it cannot yet.
func (p *Page) find(ctx context.Context, what, selector, expression string, into any) error {
	p.t.Helper()
	search := "(element => element && {found: " + expression + "})(document.querySelector(" + quote(selector) + "))"
	value, err := chromedp.Run(ctx, p.evaluate(search))
	if exception := new(chromedp.ExceptionError); errors.As(err, &exception) {
		if strings.HasPrefix(messageOf(exception).Error(), "SyntaxError") { // waiting does not help
			p.fatal(what, err)
		}
		return err
	}
	if err != nil || string(value) == "null" {
		return errAbsent // or between two documents
	}
	err = json.Unmarshal(value, &struct {
		Found any `json:"found"`
	}{into})
	if err != nil {
		p.fatal(what, err)
	}
	return nil
}

// messageOf returns an exception's message without its stack.
func messageOf(exception *chromedp.ExceptionError) error {
	if exception.Exception == nil {
		return exception
	}
	line, _, _ := strings.Cut(exception.Exception.Description, "\n")
	return errors.New(line)
}

func (p *Page) evaluate(expression string) chromedp.Action[[]byte] {
	return p.evaluateIn(0, expression)
}

// evaluateIn evaluates in an isolated world, apart from the page's scripts.
func (p *Page) evaluateIn(world runtime.ExecutionContextID, expression string) chromedp.Action[[]byte] {
	return chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise, func(params *runtime.EvaluateParams) {
		params.ContextID = world
	})
}

// frame returns the state of the tab.
func (p *Page) frame() *cdp.Frame {
	p.t.Helper()
	return do(p, "get the address", func(ctx context.Context, t *chromedp.Target) (*cdp.Frame, error) {
		tree, err := cdp.Call(ctx, t, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return nil, err
		}
		return tree.FrameTree.Frame, nil
	})
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

var errAbsent = errors.New("not there")

func absentUnless(there bool) error {
	if there {
		return nil
	}
	return errAbsent
}

// until polls a condition until it returns no error, or ends the test after
// p.Limit.
func (p *Page) until(what string, condition func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	for deadline := time.Now().Add(p.Limit); ; time.Sleep(5 * time.Millisecond) {
		err := condition(ctx)
		if err == nil {
			return
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.fatal(what, err)
		}
	}
}

// fatal ends the test with the failed action and the page's address.
func (p *Page) fatal(what string, err error) {
	p.t.Helper()
	address, other := try(p, p.evaluate("location.href"))
	if other != nil {
		address = []byte("a page that does not respond")
	}
	var exception *chromedp.ExceptionError
	if errors.As(err, &exception) {
		err = messageOf(exception)
	}
	p.t.Fatalf("%s on %s: %v", what, strings.Trim(string(address), `"`), err)
}

// quote returns a JavaScript literal.
func quote(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}

// Go navigates to an address and waits until the page is loaded.
func (p *Page) Go(address string) {
	p.t.Helper()
	loader := do(p, "go to "+address, func(ctx context.Context, t *chromedp.Target) (cdp.LoaderID, error) {
		result, err := cdp.Call(ctx, t, page.Navigate, page.NavigateParams{URL: address})
		if err == nil && result.ErrorText != "" {
			err = errors.New(result.ErrorText)
		}
		return result.LoaderID, err
	})
	if loader == "" {
		return // within the document
	}
	p.until("load "+address, func(context.Context) error { return absentUnless(p.watch.loaded(loader)) })
}

// How long after an action a navigation may start, if it is not expected and if
// it is.
const (
	grace     = 100 * time.Millisecond
	longGrace = 30 * time.Second
)

// following runs an action and waits for the navigation that it starts, if any.
// Leads is whether one is expected.
func (p *Page) following(what string, leads bool, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	before := p.watch.navigations()
	do(p, what, action)
	prevented, err := try(p, p.evaluate("window.prevented === true")) // a busy page responds after it has handled the action
	patience := grace
	if leads && (err != nil || string(prevented) != "true") {
		patience = longGrace
	}
	start := time.Now()
	what += " and load"
	p.until(what, func(context.Context) error {
		if p.watch.navigations() == before {
			return absentUnless(time.Since(start) > patience)
		}
		over, failure := p.watch.last()
		if failure != "" {
			p.fatal(what, errors.New(failure))
		}
		return absentUnless(over)
	})
}

// Fill replaces the content of a field by typing. Other fields, such as selects
// and dates, have their value set.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	var typed bool
	p.element("fill", selector, `(() => {
		if (element.disabled || element.readOnly) throw new Error("the field cannot be changed");
		element.focus();
		if (document.activeElement !== element) throw new Error("the field does not take the focus");
		if (element.matches("textarea, input:is([type=text], [type=email], [type=password], [type=search], [type=tel], [type=url], [type=number], :not([type]))")) {
			element.select();
			return true;
		}
		element.value = `+quote(text)+`;
		if (element.value !== `+quote(text)+`) throw new Error("the field does not take " + `+quote(text)+`);
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

// Click clicks an element where it is visible, and waits for the navigation that
// it starts, if any.
func (p *Page) Click(selector string) {
	p.t.Helper()
	type place struct {
		X, Y, Width, Height float64
		Frame               float64 // time of the animation frame
		Leads               bool    // a click opens another document
	}
	what := "click " + selector
	var at, before place
	p.until(what, func(ctx context.Context) error {
		before, at = at, place{}
		if err := p.find(ctx, what, selector, clickable, &at); err != nil {
			return err
		}
		if at.X != before.X || at.Y != before.Y || at.Width != before.Width || at.Height != before.Height || at.Frame == before.Frame {
			return errors.New("the element is moving")
		}
		return nil
	})
	p.following(what, at.Leads, chromedp.MouseClickXY(at.X, at.Y))
}

// clickable returns where an element can be clicked, or throws if it cannot.
const clickable = `(() => {
		element.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
		const box = element.getClientRects()[0];
		if (!box || !box.width || !box.height) throw new Error("the element is not visible");
		if (element.disabled || element.getAttribute("aria-disabled") === "true") throw new Error("the element is disabled");
		// A busy machine may draw no frame in which a moving element moves.
		for (let moving = element; moving; moving = moving.parentElement)
			if (moving.getAnimations().some(({playState, effect}) => playState === "running" && effect?.getComputedTiming().endTime !== Infinity))
				throw new Error("the element is moving");
		const at = {x: box.x + box.width / 2, y: box.y + box.height / 2, width: box.width, height: box.height};
		const hit = document.elementFromPoint(at.x, at.y);
		if (!element.contains(hit) && hit?.closest("label")?.control !== element)
			throw new Error("the element is behind " + (hit ? hit.outerHTML.slice(0, 200) : "the edge of the window"));
		return {...at, frame: document.timeline.currentTime, leads: ` + leads + `(element)};
	})()`

// leads reports whether a click or Enter on an element should open another
// document. If a script prevents it, the page's "prevented" is true.
const leads = `(element => {
		window.prevented = false;
		for (const event of ["click", "submit"]) addEventListener(event, ({defaultPrevented}) => window.prevented ||= defaultPrevented, {once: true});
		const link = element.closest("a[href]");
		if (link) {
			const [page] = link.href.split("#");
			return !link.target && !link.hasAttribute("download") && /^https?:/.test(page) && !(link.getAttribute("href").includes("#") && page === location.href.split("#")[0]);
		}
		const button = element.closest("button, input[type=submit]");
		const form = (button ?? element).form;
		return Boolean(form) && (!button || button.type === "submit") && (form.noValidate || form.matches(":valid"));
	})`

// keys are the keys with a name.
var keys = map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Space": " ", "ArrowDown": kb.ArrowDown}

// Press presses a key, such as "Tab", "Shift+Tab" or "a", and waits for the
// navigation that it starts, if any.
func (p *Page) Press(key string) {
	p.t.Helper()
	name, shifted := strings.CutPrefix(key, "Shift+")
	code, known := keys[name]
	if !known {
		if utf8.RuneCountInString(name) != 1 {
			p.fatal("press "+key, fmt.Errorf("there is no key %q", name))
		}
		code = name
	}
	var options []chromedp.KeyOption
	if shifted {
		options = append(options, chromedp.KeyModifiers(chromedp.ModifierShift))
	}
	press := chromedp.KeyEvent(code, options...)
	if name == "Enter" || name == "Space" {
		var leading bool
		p.Eval(leads+"(document.activeElement ?? document.body)", &leading)
		p.following("press "+key, leading, press)
	} else {
		do(p, "press "+key, press)
	}
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
