package browser_test

import (
	"fmt"
	"image/png"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
)

// policy allows resources of the page's own server, and no inline scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// site serves pages, scripts and style sheets by their path.
func site(t testing.TB, files map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		content, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		case r.URL.Path == "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
			return
		case r.URL.Path == "/slow":
			time.Sleep(300 * time.Millisecond)
		case r.URL.Path == "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "known"})
		case ok && path.Ext(r.URL.Path) != "":
			w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
			fmt.Fprint(w, content)
			return
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			content = "<p>Nothing here.</p>"
		}
		if cookie, err := r.Cookie("visitor"); err == nil {
			content += "<p id=visitor>" + cookie.Value + "</p>"
		}
		if word := r.FormValue("word"); word != "" {
			content += "<p id=word>" + word + "</p>"
		}
		fmt.Fprintf(w, "<!doctype html><html lang=en><head><title>Test</title></head><body><main><h1>Test</h1>%s</main></body></html>", content)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestMain(m *testing.M) { browser.Only(m) }

func TestLooks(t *testing.T) {
	address := site(t, map[string]string{
		"/":       `<link rel=stylesheet href=/a.css><script src=/a.js defer></script><p id=by-script>no</p><form action=/posted method=post><input name=word><button>Send</button></form>`,
		"/posted": "",
		"/a.css":  "@media (prefers-color-scheme: dark) { body { background: rgb(1, 2, 3) } }",
		"/a.js":   `document.getElementById("by-script").textContent = "yes"`,
	})
	b := browser.Start(t)
	background := func(look browser.Look) (color string) {
		b.Open(t, look, address+"/").Eval("getComputedStyle(document.body).backgroundColor", &color)
		return color
	}
	check.Equal(t, background(browser.Look{Dark: true}), "rgb(1, 2, 3)", "in the dark")
	check.Equal(t, background(browser.Look{}), "rgba(0, 0, 0, 0)", "in the light")

	p := b.Open(t, browser.Look{NoScript: true, Width: 320}, address+"/")
	check.Equal(t, p.Text("#by-script"), "no", "the script")
	var width int
	p.Eval("innerWidth", &width)
	check.Equal(t, width, 320, "the width")
	p.Fill("input", "hello")
	p.Follow("button")
	check.Equal(t, p.Text("#word"), "hello", "the posted word")
}

func TestCookies(t *testing.T) {
	address := site(t, map[string]string{"/": "", "/cookie": ""})
	b := browser.Start(t)
	p := b.Open(t, browser.Look{}, address+"/cookie")
	p.Go(address + "/")
	check.Equal(t, p.Exists("#visitor"), true, "known in its own tab")
	other := p.OpenTab(t, browser.Look{Dark: true})
	other.Go(address + "/")
	check.Equal(t, other.Exists("#visitor"), true, "known in another tab")
	check.Equal(t, b.Open(t, browser.Look{}, address+"/").Exists("#visitor"), false, "known elsewhere")
}

func TestAxe(t *testing.T) {
	address := site(t, map[string]string{"/": "<input id=nameless>"})
	b := browser.Start(t)
	got := failures(t, func(t testing.TB) { b.Open(t, browser.Look{}, address+"/").Axe() })
	check.True(t, len(got) == 1 && strings.Contains(got[0], "/: label: ") && strings.Contains(got[0], `<input id="nameless">`), "got %q, want the rule label and the input", got)
}

func TestComplaints(t *testing.T) {
	address := site(t, map[string]string{
		"/error.js":     `console.error("oh", {a: 1})`,
		"/warning.js":   `console.warn("hm")`,
		"/log.js":       `console.log("by the way")`,
		"/info.js":      `console.info("made by us")`,
		"/debug.js":     `console.debug("here")`,
		"/exception.js": `throw new Error("thrown")`,
		"/rejection.js": `Promise.reject(new Error("rejected"))`,
		"/socket.js":    `new WebSocket("ws://elsewhere.invalid/")`,
		"/error":        "<script src=/error.js></script>",
		"/warning":      "<script src=/warning.js></script>",
		"/log":          "<script src=/log.js></script>",
		"/info":         "<script src=/info.js></script>",
		"/debug":        "<script src=/debug.js></script>",
		"/exception":    "<script src=/exception.js></script>",
		"/rejection":    "<script src=/rejection.js></script>",
		"/socket":       "<script src=/socket.js></script>",
		"/missing":      "<img src=/missing.png alt=''>",
		"/frame":        "<iframe src=http://elsewhere.invalid/ title=Elsewhere></iframe>",
		"/image":        "<img src=http://192.0.2.1/a.png alt=''>",
		"/inline":       "<script>document.title = 'mine'</script>",
		"/style":        "<p style='color: red'>Red</p>",
	})
	b := browser.Start(t)
	for path, want := range map[string]string{
		"/error":     "error: oh {a: 1}",
		"/warning":   "warning: hm",
		"/log":       "log: by the way",
		"/info":      "info: made by us",
		"/debug":     "debug: here",
		"/exception": "Uncaught Error: thrown",
		"/rejection": "(in promise) Error: rejected",
		"/socket":    "content security policy is violated: connect-src",
		"/missing":   "status of 404",
		"/frame":     "content security policy is violated: frame-src",
		"/image":     "request to another host: http://192.0.2.1/a.png",
		"/inline":    "content security policy is violated: script-src",
		"/style":     "content security policy is violated: style-src",
	} {
		got := failures(t, func(t testing.TB) { b.Open(t, browser.Look{}, address+path) })
		check.Contains(t, strings.Join(got, "\n"), want, "%s: %q", path, got)
	}
}

func TestForeignHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>No policy</title><iframe src=http://framed.invalid/></iframe><a href=http://elsewhere.invalid/>Away</a>")
	}))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	got := strings.Join(failures(t, func(t testing.TB) { b.Open(t, browser.Look{}, server.URL).Follow("a") }), "\n")
	for _, want := range []string{"follow a on", "ERR_NAME_NOT_RESOLVED", "another host: http://framed.invalid/", "another host: http://elsewhere.invalid/"} {
		check.Contains(t, got, want)
	}
}

func TestFailedActions(t *testing.T) {
	address := site(t, map[string]string{"/": "<button hidden>Hidden</button><input disabled><button id=off disabled>Off</button>"})
	b := browser.Start(t)
	for want, do := range map[string]func(p *browser.Page){
		"not visible":       func(p *browser.Page) { p.Click("button") },
		"is disabled":       func(p *browser.Page) { p.Click("#off") },
		`got "Test`:         func(p *browser.Page) { p.WaitForText("h1", "Best") },
		"not found":         func(p *browser.Page) { p.Text("#nothing") },
		"cannot be changed": func(p *browser.Page) { p.Fill("input", "x") },
		"SyntaxError":       func(p *browser.Page) { p.Text("[") },
		"ERR_UNSAFE_PORT":   func(p *browser.Page) { p.Go("http://127.0.0.1:1/") },
	} {
		got := failures(t, func(t testing.TB) {
			p := b.Open(t, browser.Look{}, address+"/")
			p.Limit = 100 * time.Millisecond
			do(p)
		})
		check.Must(t, len(got), 1)
		check.Contains(t, got[0], want)
	}
}

// Click waits until a moving element rests, and for elements that appear later.
func TestClickWaits(t *testing.T) {
	address := site(t, map[string]string{
		"/":      `<link rel=stylesheet href=/a.css><script src=/a.js defer></script><button type=button id=moving>Click</button><p id=clicked>no</p>`,
		"/a.css": `#moving { position: relative; animation: slide 1s linear } @keyframes slide { from { left: 0 } to { left: 600px } }`,
		"/a.js": `document.getElementById("moving").addEventListener("click", event => {
			const at = event.target.getAnimations().length;
			document.getElementById("clicked").textContent = at ? "moving" : "at rest";
			const later = document.createElement("button");
			Object.assign(later, {type: "button", id: "later", textContent: "Later", disabled: true});
			later.addEventListener("click", () => { later.textContent = "Done"; });
			setTimeout(() => document.querySelector("main").append(later), 200);
			setTimeout(() => { later.disabled = false; }, 400);
		})`,
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+"/")
	p.Click("#moving")
	check.Equal(t, p.Text("#clicked"), "at rest", "the element when clicked")
	p.Click("#later")
	p.WaitForText("#later", "Done")
}

// An element that moves just before the click is clicked at its new place, and the
// element that took its place is not clicked.
func TestClickMisses(t *testing.T) {
	address := site(t, map[string]string{
		"/": `<script src=/a.js defer></script><button type=button id=other hidden>Other</button><button type=button id=wanted>Wanted</button><p id=clicked></p>`,
		"/a.js": `const find = document.elementFromPoint.bind(document);
			document.elementFromPoint = (x, y) => {
				queueMicrotask(() => { document.getElementById("other").hidden = false; });
				return find(x, y);
			};
			for (const type of ["pointerdown", "click"]) document.addEventListener(type, event => {
				document.getElementById("clicked").textContent += " " + type + " " + event.target.id;
			});`,
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+"/")
	p.Click("#wanted")
	check.Equal(t, p.Text("#clicked"), "pointerdown wanted click wanted", "the clicks")
	p.Click("#other")
	check.Equal(t, p.Text("#clicked"), "pointerdown wanted click wanted pointerdown other click other", "the clicks")
}

// A failed test leaves a screenshot and the console log.
func TestFailureIsSaved(t *testing.T) {
	address := site(t, map[string]string{"/": "<script src=/a.js></script>", "/a.js": `console.error("oh no")`})
	dir := t.TempDir()
	t.Setenv("TEST_OUTPUT", dir)
	b := browser.Start(t)
	failures(t, func(t testing.TB) {
		p := b.Open(t, browser.Look{}, address+"/")
		p.Limit = time.Millisecond
		p.Text("#nothing")
	})
	screenshots := check.Try(filepath.Glob(filepath.Join(dir, "failures", "TestFailureIsSaved-*.png"))).OK(t)
	check.Equal(t, len(screenshots), 1, "want one")
	logs := check.Try(filepath.Glob(filepath.Join(dir, "failures", "TestFailureIsSaved-*.txt"))).OK(t)
	check.Must(t, len(logs), 1, "want one")
	if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), "oh no") {
		t.Errorf("got %q, %v, want the console log", text, err)
	}
}

func TestScreenshot(t *testing.T) {
	address := site(t, map[string]string{"/": "<link rel=stylesheet href=/a.css>", "/a.css": "main { height: 3000px }"})
	dir := t.TempDir()
	t.Setenv("TEST_OUTPUT", dir)
	t.Setenv("SCREENSHOTS", "1")
	browser.Start(t).Open(t, browser.Look{Width: 400}, address+"/").Screenshot("tall")
	file := check.Try(os.Open(filepath.Join(dir, "screenshots", "tall.png"))).OK(t)
	defer file.Close()
	image := check.Try(png.DecodeConfig(file)).OK(t)
	check.Equal(t, image.Width, 400, "the width")
	check.Equal(t, image.Height > 3000, true, "the whole height")
}

// failures runs a test and returns its failures, without saving what it looked like.
func failures(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	if os.Getenv("TEST_OUTPUT") == "" {
		t.Setenv("TEST_OUTPUT", t.TempDir())
	}
	return testkit.Failures(t, test)
}
