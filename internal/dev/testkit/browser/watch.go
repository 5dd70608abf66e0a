package browser

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// watch is what a tab has told about itself. A navigation goes by its loader's
// id, which is also that of the request for its document.
type watch struct {
	readers sync.WaitGroup
	frame   cdp.FrameID // the tab's own, not one within the page

	mu      sync.Mutex
	started []string          // navigations to another document, in order
	ended   map[string]string // those that loaded, and why others did not
	status  map[string]int    // of documents
	refused map[string]bool   // addresses of documents with a status of an error
	console []chromedp.ConsoleMessage
	wrongs  []string
}

// startWatch listens to the tab of a context for as long as it is there.
func startWatch(ctx context.Context) *watch {
	w := &watch{
		frame:   cdp.FrameID(chromedp.FromContext(ctx).Target.TargetID),
		ended:   map[string]string{},
		status:  map[string]int{},
		refused: map[string]bool{},
	}
	// What was told before the end is still read after it.
	ctx = context.WithoutCancel(ctx)

	messages := chromedp.Console(ctx)
	w.readers.Go(func() {
		for message, err := range messages {
			w.locked(func() {
				if err != nil {
					w.wrongs = append(w.wrongs, err.Error())
				} else {
					w.console = append(w.console, message)
				}
			})
		}
	})
	listen(ctx, w, page.FrameStartedNavigating, func(e page.EventFrameStartedNavigating) {
		switch e.NavigationType {
		case page.FrameStartedNavigatingNavigationTypeSameDocument, page.FrameStartedNavigatingNavigationTypeHistorySameDocument:
			return
		}
		if e.FrameID == w.frame {
			w.started = append(w.started, string(e.LoaderID))
		}
	})
	listen(ctx, w, page.LifecycleEvent, func(e page.EventLifecycleEvent) {
		if e.FrameID == w.frame && e.Name == "load" {
			w.ended[string(e.LoaderID)] = ""
		}
	})
	listen(ctx, w, network.LoadingFailed, func(e network.EventLoadingFailed) {
		if e.Canceled || e.ErrorText == "net::ERR_ABORTED" { // a download, nothing to show, or another navigation
			w.ended[string(e.RequestID)] = ""
		} else {
			w.ended[string(e.RequestID)] = e.ErrorText
		}
	})
	listen(ctx, w, network.ResponseReceived, func(e network.EventResponseReceived) {
		if e.Type != network.ResourceTypeDocument {
			return
		}
		w.status[string(e.LoaderID)] = int(e.Response.Status)
		if e.Response.Status >= 400 {
			w.refused[e.Response.URL] = true
		}
	})
	listen(ctx, w, network.RequestWillBeSent, func(e network.EventRequestWillBeSent) { w.requested(e.Request.URL) })
	listen(ctx, w, network.WebSocketCreated, func(e network.EventWebSocketCreated) { w.requested(e.URL) })
	listen(ctx, w, audits.IssueAdded, func(e audits.EventIssueAdded) {
		if csp := e.Issue.Details.ContentSecurityPolicyIssueDetails; csp != nil {
			w.wrongs = append(w.wrongs, fmt.Sprintf("the content security policy is violated: %s %s %s",
				csp.ViolatedDirective, csp.ContentSecurityPolicyViolationType, csp.BlockedURL))
		}
	})
	return w
}

// listen hands each event to a func that holds the lock.
func listen[E any](ctx context.Context, w *watch, event cdp.Event[E], handle func(E)) {
	events := chromedp.Events(ctx, event)
	w.readers.Go(func() {
		for e, err := range events {
			w.locked(func() {
				if err != nil {
					w.wrongs = append(w.wrongs, err.Error())
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
		w.wrongs = append(w.wrongs, "a request to another host: "+address)
	}
}

// loopback tells whether an address stays on this machine. Some, like those
// with their data in them, name no host.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "" || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// navigations counts those that have started.
func (w *watch) navigations() (n int) {
	w.locked(func() { n = len(w.started) })
	return n
}

// last tells how the last navigation went, once it has.
func (w *watch) last() (over bool, failure string) {
	w.locked(func() { failure, over = w.ended[w.started[len(w.started)-1]] })
	return over, failure
}

// loaded tells whether a document and all it needs are there.
func (w *watch) loaded(loader cdp.LoaderID) (over bool) {
	w.locked(func() { _, over = w.ended[string(loader)] })
	return over
}

// statusOf is a document's, or 0 while it is not known.
func (w *watch) statusOf(loader cdp.LoaderID) (status int) {
	w.locked(func() { status = w.status[string(loader)] })
	return status
}

// complaints is what was wrong up to the end of the tab, which it waits for. A
// page that is right says nothing at all in the console.
func (w *watch) complaints() []string {
	w.readers.Wait()
	all := w.wrongs
	for _, message := range w.console {
		// The browser says so of every document that is an error, as it should be.
		if document, _, _ := strings.Cut(message.URL, "#"); message.Source == "network" && w.refused[document] {
			continue
		}
		all = append(all, fmt.Sprintf("the console says: %s (%s:%d)", message, message.URL, message.Line+1))
	}
	return all
}
