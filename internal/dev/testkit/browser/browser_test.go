package browser_test

import (
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/testkit/browser"
)

// policy lets a page use what its own server has, and no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// site serves pages by their path, all with the same head, and scripts whose
// path ends so.
func site(t testing.TB, files map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		content, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		case r.URL.Path == "/empty", r.URL.Path == "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
			return
		case r.URL.Path == "/slow":
			time.Sleep(300 * time.Millisecond)
		case r.URL.Path == "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "known"})
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, content)
			return
		case strings.HasSuffix(r.URL.Path, ".css"):
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprint(w, content)
			return
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			content = "<p>Nothing here.</p>"
		}
		if cookie, err := r.Cookie("visitor"); err == nil {
			content += "<p id=visitor>" + cookie.Value + "</p>"
		}
		if said := r.FormValue("said"); said != "" {
			content += "<p id=said>" + said + "</p>"
		}
		fmt.Fprintf(w, "<!doctype html><html lang=en><head><title>Test</title></head><body><main><h1>Test</h1>%s</main></body></html>", content)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func expect[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, not %v", what, got, want)
	}
}

func TestGoodPage(t *testing.T) {
	address := site(t, map[string]string{
		"/": `<script src=/a.js defer></script><p id=by-script>no</p>
			<form action=/said method=post><label>Say <input name=said id=word value=before></label>
			<select name=pick aria-label=Pick><option>one<option>two</select><button>Send</button></form>
			<p><a href=/slow>Slow</a><p><a href="#here">Within</a><p><a href=/redirect>Redirect</a><p><a href=/empty>Empty</a>`,
		"/said": "<p>Heard.</p>",
		"/slow": "<p id=slow>Slow.</p>",
		"/a.js": `document.getElementById("by-script").textContent = "yes"`,
	})
	b := browser.Start(t)
	p := b.Open(t, browser.Look{}, address+"/")
	expect(t, "the status", p.Status(), 200)
	expect(t, "the script", p.Text("#by-script"), "yes")
	p.Axe()

	var width int
	p.Eval("innerWidth", &width)
	expect(t, "the width", width, 1280)
	expect(t, "the field", p.Value("#word"), "before")
	p.Fill("#word", "after")
	p.Fill("select", "two")
	expect(t, "the choice", p.Value("select"), "two")
	expect(t, "the focus", p.Focused(), "select.pick")
	p.Press("Shift+Tab")
	expect(t, "the focus", p.Focused(), "input#word.said")
	p.Press("Enter")
	expect(t, "the address", p.URL(), address+"/said")
	expect(t, "what it heard", p.Text("#said"), "after")

	p.Go(address + "/")
	p.Fill("#word", "")
	expect(t, "the emptied field", p.Value("#word"), "")
	p.Click("a[href='#here']")
	expect(t, "the address", p.URL(), address+"/#here")
	p.Click("a[href='/empty']")
	expect(t, "the address", p.URL(), address+"/#here")
	p.Click("a[href='/slow']")
	expect(t, "the slow page", p.Text("#slow"), "Slow.")
	expect(t, "an element", p.Exists("#nothing"), false)
	p.Go(address + "/")
	p.Click("a[href='/redirect']")
	expect(t, "the address", p.URL(), address+"/")
	for range 4 {
		p.Press("Tab")
	}
	expect(t, "the focus", p.Focused(), `a "Slow"`)
	p.Press("Enter")
	expect(t, "the slow page", p.Text("#slow"), "Slow.")

	p.Go(address + "/")
	for range 3 {
		p.Press("Tab")
	}
	expect(t, "the focus", p.Focused(), `button "Send"`)
	p.Press("Space")
	expect(t, "what it heard", p.Text("#said"), "before")
}

func TestLooks(t *testing.T) {
	address := site(t, map[string]string{
		"/":      `<link rel=stylesheet href=/a.css><script src=/a.js defer></script><p id=by-script>no</p><form action=/said method=post><input name=said><button>Send</button></form>`,
		"/said":  "",
		"/a.css": "@media (prefers-color-scheme: dark) { body { background: rgb(1, 2, 3) } }",
		"/a.js":  `document.getElementById("by-script").textContent = "yes"`,
	})
	b := browser.Start(t)
	background := func(look browser.Look) (color string) {
		b.Open(t, look, address+"/").Eval("getComputedStyle(document.body).backgroundColor", &color)
		return color
	}
	expect(t, "in the dark", background(browser.Look{Dark: true}), "rgb(1, 2, 3)")
	expect(t, "in the light", background(browser.Look{}), "rgba(0, 0, 0, 0)")

	p := b.Open(t, browser.Look{NoScript: true, Width: 320}, address+"/")
	expect(t, "the script", p.Text("#by-script"), "no")
	var width int
	p.Eval("innerWidth", &width)
	expect(t, "the width", width, 320)
	p.Fill("input", "hello")
	p.Click("button")
	expect(t, "what it heard", p.Text("#said"), "hello")
}

func TestCookies(t *testing.T) {
	address := site(t, map[string]string{"/": "", "/cookie": ""})
	b := browser.Start(t)
	p := b.Open(t, browser.Look{}, address+"/cookie")
	p.Go(address + "/")
	expect(t, "known in its own tab", p.Exists("#visitor"), true)
	other := p.In(t, browser.Look{Dark: true})
	other.Go(address + "/")
	expect(t, "known in another tab", other.Exists("#visitor"), true)
	expect(t, "known elsewhere", b.Open(t, browser.Look{}, address+"/").Exists("#visitor"), false)
}

func TestErrorPage(t *testing.T) {
	b := browser.Start(t)
	p := b.Open(t, browser.Look{}, site(t, nil)+"/nowhere#there")
	expect(t, "the status", p.Status(), 404)
	expect(t, "the page", p.Text("p"), "Nothing here.")
}

func TestAxe(t *testing.T) {
	address := site(t, map[string]string{"/": "<input id=nameless>"})
	b := browser.Start(t)
	got := failures(t, func(t testing.TB) { b.Open(t, browser.Look{}, address+"/").Axe() })
	if len(got) != 1 || !strings.Contains(got[0], "/: label: ") || !strings.Contains(got[0], `<input id="nameless">`) {
		t.Errorf("%q", got)
	}
}

func TestWhatIsWrongWithAPage(t *testing.T) {
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
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestForeignHost(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>No policy</title><iframe src=http://framed.invalid/></iframe><a href=http://elsewhere.invalid/>Away</a>")
	}))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	got := strings.Join(failures(t, func(t testing.TB) { b.Open(t, browser.Look{}, server.URL).Click("a") }), "\n")
	for _, want := range []string{"click a and load", "ERR_NAME_NOT_RESOLVED", "another host: http://framed.invalid/", "another host: http://elsewhere.invalid/"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestWhatAPageCannotDo(t *testing.T) {
	address := site(t, map[string]string{"/": "<button hidden>Hidden</button><input disabled><button id=off disabled>Off</button>"})
	b := browser.Start(t)
	for want, do := range map[string]func(p *browser.Page){
		"not seen":          func(p *browser.Page) { p.Click("button") },
		"is disabled":       func(p *browser.Page) { p.Click("#off") },
		`got "Test`:         func(p *browser.Page) { p.Shows("h1", "Best") },
		"not there":         func(p *browser.Page) { p.Text("#nothing") },
		"cannot be changed": func(p *browser.Page) { p.Fill("input", "x") },
		"no key":            func(p *browser.Page) { p.Press("Tabb") },
		"SyntaxError":       func(p *browser.Page) { p.Text("[") },
		"ERR_UNSAFE_PORT":   func(p *browser.Page) { p.Go("http://127.0.0.1:1/") },
	} {
		got := failures(t, func(t testing.TB) {
			p := b.Open(t, browser.Look{}, address+"/")
			p.Limit = 100 * time.Millisecond
			do(p)
		})
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", want, got)
		}
	}
}

// What moves is clicked when it has come to rest, and what comes later when it
// is there.
func TestWhatIsNotReadyYet(t *testing.T) {
	address := site(t, map[string]string{
		"/":      `<link rel=stylesheet href=/a.css><script src=/a.js defer></script><button type=button id=moving>Click</button><p id=clicked>no</p>`,
		"/a.css": `#moving { position: relative; animation: away 1s linear } @keyframes away { from { left: 0 } to { left: 600px } }`,
		"/a.js": `document.getElementById("moving").addEventListener("click", event => {
			const at = event.target.getAnimations().length;
			document.getElementById("clicked").textContent = at ? "while it moved" : "at rest";
			const later = document.createElement("button");
			Object.assign(later, {type: "button", id: "later", textContent: "Later", disabled: true});
			later.addEventListener("click", () => { later.textContent = "Done"; });
			setTimeout(() => document.querySelector("main").append(later), 200);
			setTimeout(() => { later.disabled = false; }, 400);
		})`,
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+"/")
	p.Click("#moving")
	expect(t, "it was clicked", p.Text("#clicked"), "at rest")
	p.Click("#later")
	p.Shows("#later", "Done")
}

// A test that fails leaves a picture and the console's lines behind.
func TestFailureIsKept(t *testing.T) {
	address := site(t, map[string]string{"/": "<script src=/a.js></script>", "/a.js": `console.error("oh no")`})
	dir := t.TempDir()
	t.Setenv("TEST_OUTPUT", dir)
	b := browser.Start(t)
	failures(t, func(t testing.TB) {
		p := b.Open(t, browser.Look{}, address+"/")
		p.Limit = time.Millisecond
		p.Text("#nothing")
	})
	pictures, err := filepath.Glob(filepath.Join(dir, "failures", "TestFailureIsKept-*.png"))
	if err != nil || len(pictures) != 1 {
		t.Errorf("got pictures %q, %v, want one", pictures, err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "failures", "TestFailureIsKept-*.txt"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("got logs %q, %v, want one", logs, err)
	}
	if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), "oh no") {
		t.Errorf("got %q, %v, want the console's line", text, err)
	}
}

func TestScreenshot(t *testing.T) {
	address := site(t, map[string]string{"/": "<link rel=stylesheet href=/a.css>", "/a.css": "main { height: 3000px }"})
	dir := t.TempDir()
	t.Setenv("TEST_OUTPUT", dir)
	browser.Start(t).Open(t, browser.Look{Width: 400}, address+"/").Screenshot("tall")
	file, err := os.Open(filepath.Join(dir, "screenshots", "tall.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.DecodeConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the width", picture.Width, 400)
	expect(t, "that it is whole", picture.Height > 3000, true)
}

func BenchmarkOpen(b *testing.B) {
	address := site(b, map[string]string{"/": ""})
	chromium := browser.Start(b)
	for b.Loop() {
		failing := &recorder{TB: b}
		chromium.Open(failing, browser.Look{}, address+"/")
		for _, end := range failing.cleanups {
			end()
		}
	}
}
