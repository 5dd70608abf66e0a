package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/web/prose"
)

// visitor starts on the home page and uses only what is visible: links, forms and
// the keyboard.
type visitor struct {
	*testing.T
	*browser.Page
	server *blackbox.Server
	lang   lang.Language
	clicks int // so far
	most   int // more would mean that the task is hard
}

// TestVisitorTasks does in a browser what visitors come for, in both languages.
func TestVisitorTasks(t *testing.T) {
	t.Parallel()
	demo := blackbox.Serve(t, testkit.SQLite(t), "--demo") // with every edition
	chrome := browser.Start(t)
	for _, task := range []struct {
		name  string
		most  int // clicks
		width int
		do    func(*visitor)
	}{
		{"best coding tool under 20 euros", 3, 1280, (*visitor).findBestCodingTool},
		{"compare three on a phone", 5, 390, (*visitor).compareThree},
		{"when did a price change", 2, 1280, (*visitor).findPriceChange},
		{"key and first call", 5, 1280, (*visitor).makeFirstCall},
		{"query to shared chart", 7, 1280, (*visitor).shareChart},
		{"connect an agent", 2, 1280, (*visitor).connectAgent},
		{"follow one tool", 2, 390, (*visitor).followTool},
		{"report an error", 2, 390, (*visitor).reportError},
		{"tools retired this year", 2, 390, (*visitor).findRetired},
		{"who is behind it and what it costs", 2, 1280, (*visitor).findPublisherAndPrice},
		{"all data as CSV", 6, 1280, (*visitor).downloadCSV},
		{"last May's ranking", 2, 1280, (*visitor).readRankingOfMay},
	} {
		t.Run(task.name, func(t *testing.T) {
			s := demo
			if strings.HasPrefix(task.name, "query") { // the explorer needs assets that other pages do not
				s = startAPIDocs(t)
			}
			inLanguages(t, func(t *testing.T, l lang.Language) {
				p := chrome.Open(t, browser.Look{Width: task.width}, "http://"+s.Address+l.Path("/"))
				v := &visitor{T: t, Page: p, server: s, lang: l, most: task.most}
				task.do(v)
				check.True(t, v.clicks <= v.most, "got %d clicks, want at most %d", v.clicks, v.most)
			})
		})
	}
}

func (v *visitor) findBestCodingTool() {
	v.open(`/tools$`)
	v.reveal("#category")
	v.Fill("#category", "code")
	v.Fill("#price_max", "20")
	v.submit("#price_max")
	var best struct {
		Data struct {
			Tools struct {
				Items []struct {
					Name         string
					MonthlyPrice float64
				}
			}
		}
	}
	v.graphql(`{tools(filter: {categories: ["code"], monthlyCostMax: 20}, limit: 1) {items {name monthlyPrice}}}`, &best)
	items := best.Data.Tools.Items
	if got := v.Text("tbody tr"); len(items) != 1 || items[0].MonthlyPrice > 20 || !strings.Contains(got, lang.Typeset(items[0].Name)) {
		v.Errorf("got %s first, want %v", got, items)
	}
}

func (v *visitor) compareThree() {
	v.click("[popovertarget=menu]")
	v.open(`/(comparatifs|comparisons)$`)
	v.open(`/compare$`)
	for field, tool := range map[string]string{"#a": "Plume", "#b": "Lanterne Sourde", "#c": "Aquatinte 4"} {
		v.Fill(field, tool)
	}
	v.submit("#c")
	text := v.Text("main")
	for _, tool := range []string{"Plume", "Lanterne Sourde", "Aquatinte 4"} {
		if !strings.Contains(text, tool) {
			v.Errorf("got no %s, want all three tools", tool)
		}
	}
	var widest int
	v.Eval("Math.max(...[...document.querySelectorAll('body *')].map(e => e.scrollWidth))", &widest)
	if widest > 1200 {
		v.Errorf("got an element %d pixels wide, want at most 1,200 on a phone", widest)
	}
}

func (v *visitor) findPriceChange() {
	v.search("plume")
	var price struct {
		History []struct {
			ChangedAt string `json:"changed_at"`
		} `json:"price_history"`
	}
	v.read("/api/v1/pricing/plume", &price)
	day := price.History[0].ChangedAt
	if text := v.Text("main"); !strings.Contains(text, v.lang.DayOf(day)) && !strings.Contains(text, v.lang.ShortDayOf(day)) {
		v.Errorf("got no price change on %s at %s, want one", day, v.URL())
	}
}

func (v *visitor) makeFirstCall() {
	v.open(`/login$`)
	v.signIn("first-call")
	v.Fill("#name", "laptop")
	v.submit("#name")
	key := v.Text("#key")
	response := v.server.Call(v, http.MethodGet, "/api/v1/tools?limit=1", "", "Authorization", "Bearer "+key)
	if response.StatusCode != 200 || response.Header.Get("X-RateLimit-Tier") != "free" {
		v.Errorf("got %d with the key, want 200 on the free plan", response.StatusCode)
	}
	if text := v.Text("main"); !strings.Contains(text, "curl") || !strings.Contains(text, key) || !strings.Contains(text, "/api/embeddings/") {
		v.Errorf("got %s, want a call to copy", text)
	}
}

func (v *visitor) shareChart() {
	v.open(`/explorer$`)
	v.Text(runButton) // of the full editor
	v.Fill("#example", "5")
	v.click("#examples button")
	v.WaitForText(".graphiql-tabs", "PriceChangesByMonth")
	v.click("#save button")
	v.signIn("chart")
	v.WaitForText("main h1", v.lang.Text("Save and share a query"))
	v.Fill("#name", "scores")
	if v.Exists("#handle") {
		v.Fill("#handle", "visitor-"+string(v.lang))
	}
	v.submit("#name")
	v.open(`/q/visitor-[a-z]+/scores$`)
	if !v.Exists("main svg") {
		v.Errorf("got no chart at %s, want one", v.URL())
	}
	if response := v.server.Call(v, http.MethodGet, v.path(), "", "Accept", "text/html"); response.StatusCode != 200 {
		v.Errorf("%s: got %d for others, want 200", v.path(), response.StatusCode)
	}
}

func (v *visitor) connectAgent() {
	v.open(`/guides/agents$`)
	address := "http://" + v.server.Address + "/mcp"
	if text := v.Text("main"); !strings.Contains(text, address) || !strings.Contains(text, "Claude") || !strings.Contains(text, "ChatGPT") {
		v.Errorf("got no %s, want the address and how to use it", address)
	}
	if title := v.Text("main h1"); (title == "AI agents") != (v.lang == lang.English) {
		v.Errorf("got %q, want the guide in %s", title, v.lang.Name())
	}
	list := v.server.Call(v, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if body := blackbox.ReadAll(v, list.Body); !strings.Contains(body, "search_tools") {
		v.Errorf("got %s, want a list of tools", body)
	}
}

func (v *visitor) followTool() {
	v.search("plume")
	v.onFirstScreen(`/tools/plume/follow$`)
	v.clicks = 0 // the tool's page is where visitors find it
	v.open(`/tools/plume/follow$`)
	feed := v.target(`/tools/plume/changes\.atom$`)
	response := v.server.Call(v, http.MethodGet, feed, "")
	if body := blackbox.ReadAll(v, response.Body); response.StatusCode != 200 || !strings.Contains(body, "<feed") || !strings.Contains(body, "Plume") {
		v.Errorf("%s: got %d %s, want a feed about Plume", feed, response.StatusCode, body)
	}
	var alternates int
	v.Eval(`document.querySelectorAll('head link[type="application/atom+xml"][href$="/tools/plume/changes.atom"]').length`, &alternates)
	if alternates != 1 {
		v.Errorf("got %d links in the head, want 1 for feed readers", alternates)
	}
}

// reportError finds out whom to write to: the demo has no address.
func (v *visitor) reportError() {
	v.search("plume")
	v.onFirstScreen(`/about$`)
	v.open(`/about$`)
	if text := v.Text("main"); !strings.Contains(text, prose.DemoFacts.Publisher) {
		v.Errorf("got %s, want the publisher", text)
	}
}

func (v *visitor) findRetired() {
	v.open(`/(cimetiere|graveyard)$`)
	if text := v.Text("#year-2026"); text != "2026" {
		v.Errorf("got %q, want the tools that were retired in 2026", text)
	}
}

// onFirstScreen checks that visitors see a link without scrolling.
func (v *visitor) onFirstScreen(pattern string) {
	v.Helper()
	var bottom float64
	if v.Eval(visible+"("+strconv.Quote(pattern)+").getBoundingClientRect().bottom", &bottom); bottom > 800 {
		v.Errorf("got a link to %s down to %.0f px, want it on the first screen", pattern, bottom)
	}
}

func (v *visitor) findPublisherAndPrice() {
	v.open(`/about$`)
	if text := v.Text("main"); !strings.Contains(text, prose.DemoFacts.Publisher) || !strings.Contains(text, prose.DemoFacts.Director) || !contains(text, v.lang, "Director of publication") {
		v.Errorf("got %s, want the publisher", text)
	}
	v.open(`/pricing$`)
	if text := v.Text("main"); !contains(text, v.lang, "%s per month plus VAT", v.lang.Euros(99)) {
		v.Errorf("got %s, want the price of Pro", text)
	}
}

func (v *visitor) downloadCSV() {
	v.open(`/tools$`)
	v.open(`tools\.csv`)
	if v.Exists("#email") {
		v.signIn("download")
	}
	var text string
	v.Eval("fetch("+strconv.Quote(v.target(`tools\.csv`))+").then(response => response.text())", &text)
	var stats struct {
		Total int `json:"tools_total"`
	}
	v.read("/api/v1/stats", &stats)
	if lines := strings.Count(text, "\n"); lines != stats.Total+1 || !strings.HasPrefix(strings.TrimPrefix(text, "\ufeff"), "slug,") {
		v.Errorf("got %d lines, want a header and %d tools: %.200s", lines, stats.Total, text)
	}
}

func (v *visitor) readRankingOfMay() {
	v.open(`/changes$`)
	v.Fill("#as_of", "2026-05-31")
	v.submit("#as_of")
	var list struct{ Data []struct{ Name string } }
	v.read("/api/v1/tools?limit=1&as_of=2026-05-31", &list)
	if got := v.Text("tbody tr"); !strings.Contains(got, lang.Typeset(list.Data[0].Name)) || !strings.Contains(v.Text("main .warning"), v.lang.DayOf("2026-05-05")) {
		v.Errorf("got %s first at %s, want %s and the date of the release", got, v.URL(), list.Data[0].Name)
	}
}

// visible is a JavaScript function that returns the first visible link whose path
// matches.
const visible = `(pattern => [...document.querySelectorAll("a[href]")].find(a => {
	const box = a.getBoundingClientRect();
	return new RegExp(pattern).test(a.getAttribute("href")) && box.width > 0 && box.height > 0 && a.checkVisibility({visibilityProperty: true, opacityProperty: true});
}))`

// target returns the path and query of the first visible link whose address
// matches.
func (v *visitor) target(pattern string) (address string) {
	v.Helper()
	v.Eval("("+visible+"("+strconv.Quote(pattern)+"))?.getAttribute('href') ?? ''", &address)
	if address == "" {
		v.Fatalf("got no visible link to %s at %s, want one", pattern, v.URL())
	}
	return strings.TrimPrefix(address, "http://"+v.server.Address)
}

// open follows the first visible link whose address matches.
func (v *visitor) open(pattern string) {
	v.Helper()
	v.target(pattern)
	mark := fmt.Sprintf("visitor-%d", v.clicks)
	v.Eval(visible+"("+strconv.Quote(pattern)+").dataset.visitor = "+strconv.Quote(mark), nil)
	v.clicks++
	v.Follow(`[data-visitor="` + mark + `"]`)
	v.checkStatus()
}

func (v *visitor) checkStatus() {
	v.Helper()
	if v.Status() >= 400 {
		v.Fatalf("%s: got %d, want a page", v.URL(), v.Status())
	}
}

// click clicks on something that may stay on the page.
func (v *visitor) click(selector string) {
	v.Helper()
	v.clicks++
	v.Click(selector)
}

// submit sends the form of a field with its first button.
func (v *visitor) submit(field string) {
	v.Helper()
	v.Eval("[...document.querySelector("+strconv.Quote(field)+`).form.querySelectorAll("button:not([type=button])")].find(b => b.checkVisibility()).dataset.visitor = "submit"`, nil)
	v.clicks++
	v.Follow(`[data-visitor="submit"]`)
	v.checkStatus()
}

// reveal opens the details that hide a field, if there are any.
func (v *visitor) reveal(field string) {
	v.Helper()
	var hidden bool
	v.Eval("document.querySelector("+strconv.Quote(field)+").closest('details:not([open])')?.querySelector('summary').checkVisibility() ?? false", &hidden)
	if hidden {
		v.click("details:has(" + field + ") > summary")
	}
}

// search types a name into the search field and opens the tool.
func (v *visitor) search(name string) {
	v.Helper()
	v.Fill("#find", name)
	v.FollowKey(kb.Enter)
	if page := regexp.MustCompile(`/tools/` + name + `$`); !page.MatchString(v.URL()) {
		v.open(page.String())
	}
}

// signIn signs in with the code from an email.
func (v *visitor) signIn(name string) {
	v.Helper()
	email := name + "-" + string(v.lang) + "@example.com"
	v.WaitForText("main", v.lang.Text("Email address"))
	v.Fill("#email", email)
	v.submit("#email")
	_, code := v.server.WaitForEmail(v, email, 0)
	v.Fill("#code", code)
	v.submit("#code")
}

// path returns the path of the page.
func (v *visitor) path() string { return strings.TrimPrefix(v.URL(), "http://"+v.server.Address) }

func (v *visitor) read(path string, into any) {
	v.Helper()
	if err := json.Unmarshal([]byte(blackbox.ReadAll(v, v.server.Call(v, http.MethodGet, path, "").Body)), into); err != nil {
		v.Fatal(err)
	}
}

func (v *visitor) graphql(query string, into any) {
	v.Helper()
	body := check.Try(json.Marshal(map[string]string{"query": query})).OK(v)
	check.OK(v, json.Unmarshal([]byte(blackbox.ReadAll(v, v.server.Call(v, http.MethodPost, "/graphql", string(body)).Body)), into))
}
