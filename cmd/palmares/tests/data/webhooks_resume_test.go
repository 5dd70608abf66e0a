package data_test

import (
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// A disabled endpoint can be resumed, and replayed to, from the command line.
func TestWebhooksResume(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		in := blackbox.NewInbox(t)
		webhooks := func(args ...string) blackbox.Result {
			t.Helper()
			return blackbox.Runs(t, blackbox.Command(t, cfg, append([]string{"webhooks"}, args...)...))
		}
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "accounts", "create", "pro@example.com", "--plan", "pro"))
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 3, Seed: 1})))
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", in.URL))
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "webhooks", "disable", "1"))
		if got := webhooks("replay", "1", "--since", "2026-01-01T00:00:00Z"); got.Code == 0 || !strings.Contains(got.Err, "Resume it before you replay events") {
			t.Errorf("replay while disabled: got exit %d, %q, want a refusal that names resume", got.Code, got.Err)
		}
		if got := webhooks("resume", "7"); got.Code == 0 || !strings.Contains(got.Err, "There is no such endpoint") {
			t.Errorf("resume of endpoint 7: got exit %d, %q, want a refusal", got.Code, got.Err)
		}
		if got := webhooks("resume", "1"); got.Code != 0 || !strings.Contains(got.Out, "Endpoint 1 is active") {
			t.Errorf("resume: got exit %d, %q %q, want success", got.Code, got.Out, got.Err)
		}
		if got := webhooks("list"); !strings.Contains(got.Out, "active") {
			t.Errorf("list: got %q, want an active endpoint", got.Out)
		}
		if got := webhooks("replay", "1", "--since", "2026-01-01T00:00:00Z"); got.Code != 0 {
			t.Errorf("replay after resume: got exit %d, %q, want success", got.Code, got.Err)
		}
	})
}
