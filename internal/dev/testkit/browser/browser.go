// Package browser shows pages to tests in a real, headless Chromium, and fails
// them for what a visitor's console would complain about. Only tests import
// it.
package browser

import (
	"context"
	"testing"
	"time"

	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// limit only ends what would hang: a busy machine may take its time.
const limit = wait.Limit

// Browser is a Chromium of a test's own.
type Browser struct{ ctx context.Context }

// Start starts one, which ends with the test.
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
		chromedp.NoSandbox, // which root cannot have
		chromedp.Flag("disable-component-update", true),
		// Nothing but the tests' own servers can be reached.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
	// Not the test's context: it ends before the pages are looked at last.
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(free)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		// Asked to, it ends its own processes, and else is killed.
		asked, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := chromedp.Cancel(asked); err != nil {
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

// within is for what must not have a deadline in its context, because it
// starts something that lives as long as that.
func within(end context.CancelFunc, start func() error) error {
	timer := time.AfterFunc(limit, end)
	defer timer.Stop()
	return start()
}

// Open opens a page for a visitor who was never here: nothing is shared with
// other visitors, such as cookies.
func (b *Browser) Open(t testing.TB, look Look, address string) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := newPage(t, ctx, end, look)
	p.Go(address)
	return p
}
