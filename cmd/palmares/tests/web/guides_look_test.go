package web_test

import (
	"testing"

	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/web/guide"
)

func TestGuidesAreAccessible(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	for _, look := range looks {
		p := chrome.Open(t, look, "http://"+s.Address+"/guides")
		looksRight(t, p, "guides-"+lookName(look))
		for _, name := range append(guide.Names(), "quota") { // which does not exist
			p.Go("http://" + s.Address + "/guides/" + name)
			looksRight(t, p, "guide-"+name+"-"+lookName(look))
		}
	}
}

// Code blocks have a copy button, but only with scripts enabled.
func TestGuideCopyButtons(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	const button = `button[data-copy="code-1"]`
	p := chrome.Open(t, browser.Look{}, "http://"+s.Address+"/guides/quick-start")
	p.Click(button)
	wait.Until(t, "the button confirms the copy", func() bool { return p.Text(button) != "Copy" })
	p = chrome.Open(t, browser.Look{NoScript: true, Width: 360}, "http://"+s.Address+"/guides/quick-start")
	if !p.Exists(button + "[hidden]") {
		t.Error("got a copy button without scripts, want none")
	}
}
