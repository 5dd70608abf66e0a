package browser

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// watch records a tab's events. A navigation is identified by its loader, whose
// id is also that of the request for the document.
type watch struct {
	readers sync.WaitGroup
	frame   cdp.FrameID // of the tab itself

	mu      sync.Mutex
	started []string          // navigations to another document, in order
	ended   map[string]string // navigations that loaded (""), or why they failed
	status  map[string]int    // of documents
	failed  map[string]bool   // URLs of documents with an error status
	console []chromedp.ConsoleMessage
	errors  []string
}

// startWatch records the events of a context's tab until the tab is closed.
func startWatch(ctx context.Context) *watch {
	w := &watch{
		frame:  cdp.FrameID(chromedp.FromContext(ctx).Target.TargetID),
		ended:  map[string]string{},
		status: map[string]int{},
		failed: map[string]bool{},
	}
	// Events from before the end are still read after it.
	ctx = context.WithoutCancel(ctx)

	record(w, chromedp.Console(ctx), func(m chromedp.ConsoleMessage) { w.console = append(w.console, m) })
	record(w, chromedp.Events(ctx, page.FrameStartedNavigating), func(e page.EventFrameStartedNavigating) {
		switch e.NavigationType {
		case page.FrameStartedNavigatingNavigationTypeSameDocument, page.FrameStartedNavigatingNavigationTypeHistorySameDocument:
			return
		}
		if e.FrameID == w.frame {
			w.started = append(w.started, string(e.LoaderID))
		}
	})
	record(w, chromedp.Events(ctx, page.LifecycleEvent), func(e page.EventLifecycleEvent) {
		if e.FrameID == w.frame && e.Name == "load" {
			w.ended[string(e.LoaderID)] = ""
		}
	})
	record(w, chromedp.Events(ctx, network.LoadingFailed), func(e network.EventLoadingFailed) {
		if e.Canceled || e.ErrorText == "net::ERR_ABORTED" { // a download, nothing to show, or another navigation
			w.ended[string(e.RequestID)] = ""
		} else {
			w.ended[string(e.RequestID)] = e.ErrorText
		}
	})
	record(w, chromedp.Events(ctx, network.ResponseReceived), func(e network.EventResponseReceived) {
		if e.Type != network.ResourceTypeDocument {
			return
		}
		w.status[string(e.LoaderID)] = int(e.Response.Status)
		if e.Response.Status >= 400 {
			w.failed[e.Response.URL] = true
		}
	})
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
			w.locked(func() {
				if err != nil {
					w.errors = append(w.errors, err.Error())
				} else {
					handle(e)
				}
			})
		}
	})
}

func (w *watch) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
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

// navigations returns the number of navigations started.
func (w *watch) navigations() (n int) {
	w.locked(func() { n = len(w.started) })
	return n
}

// last reports whether the last navigation is over, and why it failed.
func (w *watch) last() (over bool, failure string) {
	w.locked(func() { failure, over = w.ended[w.started[len(w.started)-1]] })
	return over, failure
}

// loaded reports whether a document and its resources are loaded.
func (w *watch) loaded(loader cdp.LoaderID) (over bool) {
	w.locked(func() { _, over = w.ended[string(loader)] })
	return over
}

// statusOf returns the HTTP status of a document, or 0 while it is unknown.
func (w *watch) statusOf(loader cdp.LoaderID) (status int) {
	w.locked(func() { status = w.status[string(loader)] })
	return status
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
