package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Fill replaces what is in a field, as somebody who types does. A field in
// which one does not type, such as a choice or a date, takes the value as is.
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
	p.do("fill "+selector, func(ctx context.Context, t *chromedp.Target) error {
		if text == "" {
			_, err := chromedp.KeyEvent(kb.Delete)(ctx, t)
			return err
		}
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// Click clicks where the element is seen, and waits for the navigation that it
// starts, if any.
func (p *Page) Click(selector string) {
	p.t.Helper()
	type place struct {
		X, Y, Width, Height float64
		Frame               float64 // when it was there, frame by frame
		Leads               bool    // to another document
	}
	var at, before place
	p.until("click "+selector, func(ctx context.Context) (bool, error) {
		before, at = at, place{}
		if is, err := p.find(ctx, selector, clickable, &at); !is || err != nil {
			return false, err
		}
		if at.X != before.X || at.Y != before.Y || at.Width != before.Width || at.Height != before.Height || at.Frame == before.Frame {
			return false, notYet{errors.New("the element does not keep still")}
		}
		return true, nil
	})
	p.following("click "+selector, at.Leads, func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.MouseClickXY(at.X, at.Y)(ctx, t)
		return err
	})
}

// clickable is where an element can be clicked, once it can.
const clickable = `(() => {
		element.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
		const box = element.getClientRects()[0];
		if (!box || !box.width || !box.height) throw new Error("the element is not seen");
		if (element.disabled || element.getAttribute("aria-disabled") === "true") throw new Error("the element is disabled");
		const at = {x: box.x + box.width / 2, y: box.y + box.height / 2, width: box.width, height: box.height};
		const hit = document.elementFromPoint(at.x, at.y);
		if (!element.contains(hit) && hit?.closest("label")?.control !== element)
			throw new Error("the element is behind " + (hit ? hit.outerHTML.slice(0, 200) : "the edge of the window"));
		return {...at, frame: document.timeline.currentTime, leads: ` + leads + `(element)};
	})()`

// leads reports whether a click on an element, or Enter, is to load another
// document, unless a script prevents it: then the page's "prevented" is true.
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

var keys = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Space": " ", "Escape": kb.Escape, "Backspace": kb.Backspace, "Delete": kb.Delete,
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

// Press presses a key, as in "Tab", "Shift+Tab" or "a", on whatever has the
// focus, and waits for the navigation that it starts, if any.
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
	press := func(ctx context.Context, t *chromedp.Target) error {
		_, err := chromedp.KeyEvent(code, options...)(ctx, t)
		return err
	}
	if name == "Enter" || name == "Space" {
		var leading bool
		p.Eval(leads+"(document.activeElement ?? document.body)", &leading)
		p.following("press "+key, leading, press)
	} else {
		p.do("press "+key, press)
	}
}

// Focused describes the element that has the focus, by its id and name or, if
// it has neither, its text: input#email.email, or a "Sign in".
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
