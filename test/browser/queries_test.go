package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

// signIn signs a browser in.
func signIn(t *testing.T, s *blackbox.Server, p *browser.Page, l lang.Language, email string) {
	t.Helper()
	p.Go("http://" + s.Address + l.Path("/login"))
	p.Fill("#email", email)
	p.Follow("main button")
	link, _ := s.WaitForEmail(t, email, 0)
	p.Go(link)
	p.Follow("main button")
}

// A query goes from the explorer to an address of its own: written, run, saved, read as a
// page, edited, and given a token.
func TestQueryBecomesEndpoint(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	chrome := browser.Start(t)
	inLanguages(t, func(t *testing.T, l lang.Language) { saveQuery(t, s, chrome, l) })
}

func saveQuery(t *testing.T, s *blackbox.Server, chrome *browser.Browser, l lang.Language) {
	base, handle := "http://"+s.Address, "kay-"+string(l)
	pages := base + l.Path("")
	p := chrome.Open(t, browser.Look{}, pages+"/")
	const query = "query ByCategory($most: Float) {\n  tools(limit: 5, filter: {monthlyCostMax: $most}) {\n    items { name category { label } score }\n  }\n}\n"
	p.Go(pages + "/explorer?query=" + url.QueryEscape(query))
	p.WaitForText("#cost", map[lang.Language]string{lang.English: "Cost: ", lang.French: "Coût"}[l])
	openEditor(p)
	runQuery(p)
	p.WaitForText(inResponse, `"score"`)
	p.Follow("#save button")
	p.WaitForText("h1", l.Text("Sign in")) // and back to the query
	p.Fill("#email", handle+"@example.com")
	p.Follow("main button")
	link, _ := s.WaitForEmail(t, handle+"@example.com", 0)
	p.Go(link)
	p.Follow("main button")
	p.WaitForText("h1", l.Text("Save and share a query"))
	var text string
	if p.Eval("['title', 'name', 'chart', 'x', 'y', 'series'].map(id => document.getElementById(id).value).join()", &text); text != "By category,by-category,bar,name,score," {
		t.Errorf("got %s, want what the query suggests", text)
	}
	if p.Eval("document.getElementById('query').value", &text); text != query {
		t.Errorf("got query %q, want what the explorer had, %q", text, query)
	}
	p.WaitForText("#preview figcaption", map[lang.Language]string{lang.English: "Score by tool", lang.French: "Note par outil"}[l])
	p.Fill("#chart", "table")
	p.WaitForText("#preview caption", map[lang.Language]string{lang.English: "5 rows", lang.French: "5 lignes"}[l])
	p.Fill("#chart", "bar")
	p.WaitForText("#preview figcaption", map[lang.Language]string{lang.English: "Score by tool", lang.French: "Note par outil"}[l])
	p.Screenshot("query-preview-" + string(l))
	p.Fill("#name", "new")
	p.Fill("#handle", handle)
	p.Fill("#title", "Good <i>tools</i>")
	p.Fill("#description", "Five <b>good</b> tools")
	p.Follow("form.wide-form .row button")
	p.WaitForText("#wrong", l.Text("The name %q is reserved or looks like a hash; choose another.", "new"))
	if p.Eval("document.getElementById('handle').value", &text); text != handle {
		t.Errorf("got handle %q after an error, want what was typed", text)
	}
	p.Axe()
	p.Fill("#name", "good-tools")
	p.Follow("form.wide-form button")
	p.WaitForText(".notice", l.Text("The query was saved."))
	p.Axe()
	p.Screenshot("query-saved-" + string(l))
	check.Equal(t, p.Text("#page"), base+"/q/"+handle+"/good-tools", "first")
	p.Go(base + l.Path("/q/"+handle+"/good-tools"))
	p.WaitForText("h1", "Good <i>tools</i>")
	p.WaitForText("figcaption", map[lang.Language]string{lang.English: "Score by tool", lang.French: "Note par outil"}[l])
	p.WaitForText("table", "Bosco & Matelots")
	p.WaitForText(".description", "Five <b>good</b> tools")
	check.True(t, p.Exists("svg.chart rect") && !p.Exists(".description b"), "got no chart, or HTML of the description, want a chart and text")
	check.True(t, p.Exists("meta[name=robots][content=noindex]"), "got a page of a user's query for search engines, want none")
	for _, width := range widths {
		p.Change(browser.Look{Width: width})
		checkFit(t, p, "query page")
		p.Screenshot(fmt.Sprintf("query-page-%s-%d", l, width))
	}
	p.Axe()
	checkEmbedding(t, p, p.Text("#embed"))
	p.Go(base + l.Path("/q/"+handle+"/good-tools"))
	other := map[lang.Language]lang.Language{lang.English: lang.French, lang.French: lang.English}[l]
	p.Fill("[name=most]", "15")
	p.Follow("form.filter button")
	p.Follow(".bar a[lang=" + string(other) + "]")
	p.WaitForText("h2", other.Text("Share"))
	check.Equal(t, p.URL(), base+other.Path("/q/"+handle+"/good-tools?most=15"), "in the other language")
	if text := p.Text("table"); strings.Contains(text, "Pigment & Braise") { // 18 €
		t.Errorf("got %s, want only tools up to 15 €", text)
	}

	p.Go(pages + "/account/queries/good-tools/edit")
	p.Eval(`(document.getElementById("query").value = "{ categories { slug toolCount } }", document.getElementById("chart").value = "", document.querySelector("[name=private]").checked = true)`, nil)
	p.Follow("form.wide-form button")
	p.WaitForText("pre", "toolCount")
	p.Follow("form[action$='/token'] button")
	address := p.Text("#token")
	check.True(t, regexp.MustCompile(`^`+regexp.QuoteMeta(base)+`/q/`+handle+`/good-tools\.csv\?token=qt_\w+$`).MatchString(address), "got %s, want an address with a token", address)
	p.Go(pages + "/account/queries/good-tools")
	p.Follow("form[action$='/revoke-token'] button")
	p.WaitForText(".notice", l.Text("The token was revoked."))
	p.Go(pages + "/account/queries")
	p.WaitForText("table", l.Text("private"))
	p.Axe()
	p.Screenshot("queries-" + string(l))
	p.Go(pages + "/account/queries/good-tools/delete")
	p.Axe()
	p.Follow("main form button")
	p.WaitForText(".notice", l.Text("The query was deleted."))
}

// checkEmbedding opens code for other sites on one, and the frame alone.
func checkEmbedding(t *testing.T, p *browser.Page, code string) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Other site</title><link rel="icon" href="data:,"><main><h1>Other</h1>%s</main></html>`, code)
	}))
	t.Cleanup(site.Close)
	p.Go(site.URL) // which fails if the console says that the frame was refused
	var frame string
	p.Eval(`new Promise(done => {
		const frame = document.querySelector("iframe");
		const check = () => done(frame.contentDocument === null ? frame.src : "same origin or not loaded"); // another origin's document is hidden
		frame.contentDocument === null ? check() : frame.addEventListener("load", check);
	})`, &frame)
	p.Go(frame)
	var has struct{ Scripts, Forms, Buttons int }
	p.Eval("({scripts: document.scripts.length, forms: document.forms.length, buttons: document.querySelectorAll('button').length})", &has)
	check.True(t, has.Scripts+has.Forms+has.Buttons == 0 && p.Exists("svg.chart rect") && p.Exists(".credit a[href*='/good-tools']"), "got %+v, want only a chart and a link", has)
	for _, width := range widths {
		p.Change(browser.Look{Width: width})
		checkFit(t, p, "frame")
	}
	p.Axe()
	p.Screenshot("query-embed")
}

// checkFrame opens what code for other sites shows, at several widths, and compares it with the
// height that the code has there.
func checkFrame(t *testing.T, p *browser.Page, code string) {
	t.Helper()
	found := regexp.MustCompile(`src="([^"]+)".* height="(\d+)".*;height:([^"]+)"`).FindStringSubmatch(code)
	check.Must(t, len(found), 4, "parts of %s", code)
	p.Go(found[1])
	for _, width := range []int{320, 500, 700, 1_200} {
		p.Change(browser.Look{Width: width})
		var size struct {
			Width, Height, Frame, Chart float64
			Drawings                    int
		}
		p.Eval(fmt.Sprintf(`(drawings => {
			const box = document.body.appendChild(document.createElement("div")), frame = box.appendChild(document.createElement("div"));
			box.style.cssText = "container-type: inline-size; width: 100vw";
			frame.style.height = %q;
			const height = frame.getBoundingClientRect().height;
			box.remove();
			return {
				width: document.documentElement.scrollWidth, height: document.querySelector("main").getBoundingClientRect().height, frame: height,
				drawings: drawings.length, chart: Math.max(...drawings.map(svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)),
			};
		})([...document.querySelectorAll("svg.chart")].filter(svg => svg.checkVisibility()))`, found[3]), &size)
		highest, _ := strconv.ParseFloat(found[2], 64)
		if size.Width > float64(width) || size.Height > size.Frame || size.Height < 0.7*size.Frame || size.Height > highest || size.Drawings != 1 || size.Chart > 1.25 {
			t.Errorf("%s at %d: got %+v in at most %g pixels, want one chart that fits, leaves at most three tenths, and is hardly stretched", found[1], width, size, highest)
		}
	}
}

// panelCharts are what the panels draw, which is what their descriptions are about.
var panelCharts = map[string]string{
	"score-movers": "Change by tool", "price-drops": "Change by tool", "scores-by-category-and-month": "Average score over time by category",
	"scores-by-pricing": "Number by pricing", "retirements": "Number over time by reason", "good-and-affordable": "Monthly price, € by tool",
	"compared-with": "Score by second tool", "win-rates": "Win rate by tool", "newest-tools": "Monthly price, € by tool",
	"price-increases": "Number over time by category", "key-figures": "Key figures", "category-by-pricing": "Number by category and pricing",
	"not-updated": "Score by tool", "monthly-prices": "Average monthly price, € by category", "growth": "Figures over time",
}

// The gallery has the fifteen panels from the start, and each has a chart.
func TestGallery(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo") // with all editions: two panels compare them
	base := "http://" + s.Address
	for _, view := range views {
		p := browser.Start(t).Open(t, view.Look, base+view.Path("/q"))
		var addresses []string
		p.Eval("[...document.querySelectorAll('.queries a')].map(a => a.href)", &addresses)
		check.Equal(t, len(addresses), 15, "queries")
		check.True(t, p.Exists(".queries img[src^='"+view.Path("/q/")+"'][src$='.small.svg']"), "got no small charts in the language of the page, want them")
		checkPage(t, p, "gallery-"+view.String())
		for _, address := range addresses {
			p.Go(address)
			checkLanguage(t, p, view.Language, address)
			hasParts := p.Exists("svg.chart :is(rect, path, text)") && p.Exists(".figure ~ .scroll table") && p.Exists(".scroll:has(table) ~ section #data")
			check.True(t, hasParts, "%s: got no chart above a table above the files, want one", address)
			name := address[strings.LastIndexByte(address, '/')+1:]
			got, want := p.Text("figcaption"), panelCharts[name]+" · edition 8, "
			check.True(t, view.Language != lang.English || strings.HasPrefix(got, want), "%s: got a chart of %q, want %q", name, got, want)
			checkPage(t, p, "q-"+name+"-"+view.String())
			if view.String() == views[0].String() {
				checkFrame(t, p, p.Text("#embed"))
			}
		}
		p.Go(base + view.Path("/q?search=price"))
		p.WaitForText(".queries", view.Text("Price drops over a period, in euros and percent"))
		text := p.Text(".queries")
		check.True(t, !strings.Contains(text, view.Text("Win rate by tool")), "got %s, want only matches", text)
	}
	for target, want := range map[string]int{"/q?page=0": 400, "/q?page=x": 400, "/q?search=" + strings.Repeat("x", 101): 400, "/q?page=2": 200, "/q?search=%3Cscript%3E": 200} {
		r := check.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, base+target, nil)).OK(t)
		r.Header.Set("Accept", "text/html")
		got := check.Try(http.DefaultClient.Do(r)).OK(t)
		body := blackbox.ReadAll(t, got.Body)
		check.True(t, got.StatusCode == want && !strings.Contains(body, "<script>"), "%s: got %d, want %d", target, got.StatusCode, want)
	}
	for target, want := range map[string]string{"/q": "/q/palmares/growth", "/q.md": "/q/palmares/growth", "/q/palmares/win-rates": "| Tool |"} {
		got := s.Call(t, http.MethodGet, target, "", "Accept", "text/markdown")
		if body := blackbox.ReadAll(t, got.Body); got.Header.Get("Content-Type") != "text/markdown; charset=utf-8" || !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want Markdown with %q:\n%s", target, got.Header.Get("Content-Type"), want, body)
		}
	}
	for target, want := range map[string]string{
		"/q/palmares/growth.png": "image/png \x89PNG", "/q/palmares/key-figures.svg?from=2026-09-01": "image/svg+xml <svg xmlns",
		"/q/palmares/key-figures.small.svg?from=2026-09-01": "image/svg+xml <svg xmlns",
	} {
		for _, status := range []string{"miss", "hit"} {
			got := s.Call(t, http.MethodGet, target, "")
			if body := blackbox.ReadAll(t, got.Body); got.StatusCode != 200 || !strings.HasPrefix(got.Header.Get("Content-Type")+" "+body, want) || !strings.Contains(got.Header.Get("Cache-Status"), status) {
				t.Errorf("%s: got %d %s %v, want %s, %s", target, got.StatusCode, body[:min(len(body), 20)], got.Header, want, status)
			}
		}
	}
	for target, want := range map[string]int{"/q/palmares/nothing.svg": 404, "/q/palmares/key-figures.svg?from=x": 400} {
		check.Equal(t, s.Call(t, http.MethodGet, target, "").StatusCode, want, target)
	}
	for accept, want := range map[string]string{"text/html": "<h1>Query not found</h1>", "application/json": `{"error":`} {
		got := s.Call(t, http.MethodGet, "/q/palmares/nothing", "", "Accept", accept)
		body := blackbox.ReadAll(t, got.Body)
		check.True(t, got.StatusCode == 404 && strings.Contains(body, want), "unknown query for %s: got %d %s, want 404 with %s", accept, got.StatusCode, body, want)
	}
}
