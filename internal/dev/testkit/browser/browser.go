// Package browser opens pages in a headless Chromium for tests, and fails the tests
// if the browser's console shows anything.
package browser

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// limit only ends tests that hang.
const limit = wait.Limit

// Browser is a Chromium process.
type Browser struct {
	ctx context.Context
	end func() error
}

// shared is the Chromium of all tests of a package: starting one takes seconds.
var shared struct {
	mu      sync.Mutex
	browser *Browser
}

// Only is Main for a package whose tests all belong to make test-full.
func Only(m *testing.M) {
	if os.Getenv(testkit.TierVariable) != "full" {
		fmt.Println("skipped: these tests need Chromium, and make test-full runs them")
		os.Exit(0)
	}
	Main(m)
}

// Main runs the tests of a package and ends their Chromium. TestMain calls it.
func Main(m *testing.M) {
	code := m.Run()
	if shared.browser != nil {
		if err := shared.browser.end(); err != nil {
			fmt.Fprintln(os.Stderr, "end Chromium:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Start returns a Chromium process that the tests of a package share.
func Start(t testing.TB) *Browser {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.browser == nil {
		started, err := start(testkit.Chromium.Ensure(t))
		check.MustTrue(t, err == nil, "start Chromium: %v", err)
		shared.browser = started
	}
	return shared.browser
}

func start(path string) (*Browser, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		chromedp.DisableGPU,
		chromedp.NoSandbox, // not available to root
		chromedp.Flag("disable-component-update", true),
		// The suggestions of the address bar are web pages, which render again for
		// each tab and each width, although nobody sees them.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup"),
		// Only the tests' own servers are reachable.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	end := func() error {
		defer free()
		// A graceful shutdown also ends its child processes.
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return chromedp.Cancel(ctx)
	}
	timer := time.AfterFunc(limit, stop) // a context with a deadline would limit its lifetime, too
	defer timer.Stop()
	if _, err := chromedp.CallBrowser(ctx, protocol.GetVersion, cdp.Empty{}); err != nil {
		free()
		return nil, err
	}
	return &Browser{ctx, end}, nil
}

// Open opens a page as a new visitor, who shares no cookies with others.
func (b *Browser) Open(t testing.TB, look Look, address string) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := newPage(t, ctx, end, look)
	p.Go(address)
	return p
}

// Look is how a visitor's browser is set up.
type Look struct {
	Dark     bool // prefers dark colors
	Width    int  // of the window; 1280 if 0
	NoScript bool // JavaScript is disabled
}

const usualWidth, height = 1280, 900

// steps set up a tab.
func (l Look) steps() []chromedp.Action[chromedp.Void] {
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	return []chromedp.Action[chromedp.Void]{
		call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(cmp.Or(l.Width, usualWidth)), Height: height, DeviceScaleFactor: 1,
		}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.NoScript}),
		// Lets several tabs have the focus at the same time.
		call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		call(audits.Enable, cdp.Empty{}),
	}
}

// call returns an action that calls a command and ignores its result.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}
