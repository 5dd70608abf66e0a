package main

import (
	"strings"
	"testing"

	"palmares/internal/feed/synth"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// A disabled endpoint can be resumed, and replayed to, from the command line.
func TestWebhooksResume(t *testing.T) {
	testdb.Each(t, func(t *testing.T, cfg store.Config) {
		in := newInbox(t)
		webhooks := func(args ...string) result {
			t.Helper()
			return runs(t, palmares(t, cfg, append([]string{"webhooks"}, args...)...))
		}
		succeeds(t, palmares(t, cfg, "accounts", "create", "pro@example.com", "--plan", "pro"))
		succeeds(t, palmares(t, cfg, "import", synthFile(t, synth.Options{Tools: 3, Seed: 1})))
		succeeds(t, palmares(t, cfg, "webhooks", "add", "pro@example.com", in.URL))
		succeeds(t, palmares(t, cfg, "webhooks", "disable", "1"))
		if got := webhooks("replay", "1", "--since", "2026-01-01T00:00:00Z"); got.code == 0 || !strings.Contains(got.err, "Resume it before you replay events") {
			t.Errorf("replay while disabled: got exit %d, %q, want a refusal that names resume", got.code, got.err)
		}
		if got := webhooks("resume", "7"); got.code == 0 || !strings.Contains(got.err, "There is no such endpoint") {
			t.Errorf("resume of endpoint 7: got exit %d, %q, want a refusal", got.code, got.err)
		}
		if got := webhooks("resume", "1"); got.code != 0 || !strings.Contains(got.out, "Endpoint 1 is active") {
			t.Errorf("resume: got exit %d, %q %q, want success", got.code, got.out, got.err)
		}
		if got := webhooks("list"); !strings.Contains(got.out, "active") {
			t.Errorf("list: got %q, want an active endpoint", got.out)
		}
		if got := webhooks("replay", "1", "--since", "2026-01-01T00:00:00Z"); got.code != 0 {
			t.Errorf("replay after resume: got exit %d, %q, want success", got.code, got.err)
		}
	})
}
