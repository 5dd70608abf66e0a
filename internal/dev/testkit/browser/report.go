package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
)

// watch records what is wrong with the pages of a tab.
type watch struct {
	readers sync.WaitGroup
	frame   cdp.FrameID     // of the tab itself
	failed  map[string]bool // URLs of documents with an error status

	mu      sync.Mutex
	console []chromedp.ConsoleMessage
	errors  []string
}

// startWatch records the events of a context's tab until the tab is closed.
func startWatch(ctx context.Context) *watch {
	w := &watch{frame: cdp.FrameID(chromedp.FromContext(ctx).Target.TargetID), failed: map[string]bool{}}
	// Events from before the end are still read after it.
	ctx = context.WithoutCancel(ctx)

	record(w, chromedp.Console(ctx), func(m chromedp.ConsoleMessage) { w.console = append(w.console, m) })
	record(w, chromedp.Events(ctx, network.RequestWillBeSent), func(e network.EventRequestWillBeSent) { w.requested(e.Request.URL) })
	record(w, chromedp.Events(ctx, network.WebSocketCreated), func(e network.EventWebSocketCreated) { w.requested(e.URL) })
	record(w, chromedp.Events(ctx, audits.IssueAdded), func(e audits.EventIssueAdded) {
		if csp := e.Issue.Details.ContentSecurityPolicyIssueDetails; csp != nil {
			w.errors = append(w.errors, fmt.Sprintf("content security policy is violated: %s %s %s",
				csp.ViolatedDirective, csp.ContentSecurityPolicyViolationType, csp.BlockedURL))
		}
	})
	return w
}

// record calls a function with each event, under the lock.
func record[E any](w *watch, events iter.Seq2[E, error], handle func(E)) {
	w.readers.Go(func() {
		for e, err := range events {
			w.mu.Lock()
			if err != nil {
				w.errors = append(w.errors, err.Error())
			} else {
				handle(e)
			}
			w.mu.Unlock()
		}
	})
}

func (w *watch) requested(address string) {
	if !loopback(address) {
		w.errors = append(w.errors, "request to another host: "+address)
	}
}

// loopback reports whether a URL stays on this machine. Some, such as data URLs,
// have no host.
func loopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Host == "" || u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// complaints waits for the end of the tab and returns everything wrong with its
// pages. Any output in the console is wrong.
func (w *watch) complaints() []string {
	w.readers.Wait()
	all := w.errors
	for _, message := range w.console {
		// The browser logs every document with an error status.
		if document, _, _ := strings.Cut(message.URL, "#"); message.Source == "network" && w.failed[document] {
			continue
		}
		all = append(all, fmt.Sprintf("console: %s (%s:%d)", message, message.URL, message.Line+1))
	}
	return all
}

// Axe fails the test for each accessibility rule that the page violates.
func (p *Page) Axe() {
	p.t.Helper()
	check.MustTrue(p.t, !p.look.NoScript, "axe needs JavaScript, which is disabled")
	dir := filepath.Join(repo.Root(p.t), "internal", "dev", "testkit", "browser", "axe")
	testkit.NPM(p.t, dir)
	source := check.Try(os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))).OK(p.t)
	result := do(p, "run axe", func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		// The page's scripts and content security policy do not affect this world.
		world, err := cdp.Call(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: p.watch.frame, WorldName: "axe"})
		if err != nil {
			return nil, err
		}
		inWorld := func(params *runtime.EvaluateParams) { params.ContextID = world.ExecutionContextID }
		return chromedp.Evaluate[[]byte](string(source)+`
		; // During a transition between two schemes, colors have too little contrast.
		Promise.allSettled(document.getAnimations().filter(animation => animation.effect?.getTiming().iterations !== Infinity)
			.map(animation => animation.finished)).then(() => axe.run(document, {
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
			resultTypes: ["violations"],
			iframes: false,
		})).then(result => result.violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.map(({html}) => ({html}))})))`, chromedp.EvalAwaitPromise, inWorld)(ctx, t)
	})
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	check.OK(p.t, json.Unmarshal(result, &violations))
	for _, v := range violations {
		var nodes strings.Builder
		for _, node := range v.Nodes {
			nodes.WriteString("\n\t" + node.HTML)
		}
		p.t.Errorf("%s: %s: %s%s", p.URL(), v.ID, v.Help, &nodes)
	}
}

// Screenshots reports whether tests take screenshots for people to look at.
func Screenshots() bool { return os.Getenv("SCREENSHOTS") != "" }

// Screenshot saves a screenshot of the whole page in the directory TEST_OUTPUT,
// by default test-output in the repository. It does nothing without SCREENSHOTS=1.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	if !Screenshots() {
		return
	}
	p.save("screenshots", name+".png", do(p, "take a screenshot", fullScreenshot))
}

// fullScreenshot captures the whole page. Fast compression saves a sixth of the CPU
// time of a test with many screenshots.
func fullScreenshot(ctx context.Context, t *chromedp.Target) ([]byte, error) {
	yes := true
	result, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &yes, OptimizeForSpeed: &yes})
	if err != nil {
		return nil, err
	}
	return result.Data, nil
}

func (p *Page) save(dir, name string, data []byte) (file string) {
	p.t.Helper()
	dir = filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(repo.Root(p.t), "test-output")), dir)
	check.OK(p.t, os.MkdirAll(dir, 0o755))
	file = filepath.Join(dir, name)
	check.OK(p.t, os.WriteFile(file, data, 0o644))
	return file
}

// saveFailure saves something about a failed test, and logs where.
func (p *Page) saveFailure(what, suffix string, data []byte) {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
	p.t.Logf("%s: %s", what, p.save("failures", name+"-"+string(p.watch.frame)+suffix, data))
}
