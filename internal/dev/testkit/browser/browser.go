// Package browser shows pages to tests in a headless Chromium, and fails the
// tests if the browser's console would complain.
package browser

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// limit only ends tests that hang.
const limit = wait.Limit

// Browser is a Chromium process.
type Browser struct{ ctx context.Context }

// Start starts a Chromium, which ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := testkit.Chromium.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"),
		chromedp.DisableGPU,
		chromedp.NoSandbox, // not available to root
		chromedp.Flag("disable-component-update", true),
		// Only the tests' own servers are reachable.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
	// Not the test's context, which ends before the last checks of the pages.
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(free)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		// A graceful end also ends its child processes.
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end Chromium: %v", err)
		}
	})
	err = within(end, func() error {
		_, err := chromedp.CallBrowser(ctx, protocol.GetVersion, cdp.Empty{})
		return err
	})
	if err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &Browser{ctx}
}

// within limits the start of something that lives as long as its context, and
// so must not have a context with a deadline.
func within(end context.CancelFunc, start func() error) error {
	timer := time.AfterFunc(limit, end)
	defer timer.Stop()
	return start()
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

// apply sets up a tab.
func (l Look) apply(ctx context.Context, t *chromedp.Target) error {
	if l.Width == 0 {
		l.Width = usualWidth
	}
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	if _, err := cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(l.Width), Height: height, DeviceScaleFactor: 1,
	}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.NoScript}); err != nil {
		return err
	}
	// Lets several tabs have the focus at the same time.
	if _, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, t, audits.Enable, cdp.Empty{})
	return err
}
