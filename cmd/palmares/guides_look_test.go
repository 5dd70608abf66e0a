package main

import (
	"testing"
	"time"

	"palmares/internal/guide"
	"palmares/internal/testdb"
	"palmares/internal/testdb/browser"
)

func TestGuidesAreAccessible(t *testing.T) {
	t.Parallel()
	s := startServer(t, testdb.SQLite(t), "--demo")
	chrome := browser.Start(t)
	for _, look := range everyLook {
		p := chrome.Open(t, look, "http://"+s.address+"/guides")
		looksRight(t, p, "guides-"+lookName(look))
		for _, name := range append(guide.Names(), "quota") { // which nobody has
			p.Go("http://" + s.address + "/guides/" + name)
			looksRight(t, p, "guide-"+name+"-"+lookName(look))
		}
	}
}

// Code can be copied with a button; without a script nobody sees one that
// would do nothing.
func TestGuidesAreCopied(t *testing.T) {
	t.Parallel()
	s := startServer(t, testdb.SQLite(t), "--demo")
	chrome := browser.Start(t)
	const button = `button[data-copy="code-1"]`
	p := chrome.Open(t, browser.Look{}, "http://"+s.address+"/guides/quick-start")
	p.Click(button)
	for deadline := time.Now().Add(5 * time.Second); p.Text(button) == "Copy"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the button says nothing")
		}
	}
	p = chrome.Open(t, browser.Look{NoScript: true, Width: 360}, "http://"+s.address+"/guides/quick-start")
	if !p.Exists(button + "[hidden]") {
		t.Error("a button is there that does nothing")
	}
}
