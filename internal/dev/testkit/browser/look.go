package browser

import (
	"context"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Look is how a visitor sees the pages.
type Look struct {
	Dark     bool // prefers dark colors
	Width    int  // of the window, 1280 if not told
	NoScript bool // runs no script of the page
}

const usualWidth, height = 1280, 900

// apply makes the tab look so, and tell of all that is to be watched.
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
	// Several tabs can each have the focus.
	if _, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, t, audits.Enable, cdp.Empty{})
	return err
}
