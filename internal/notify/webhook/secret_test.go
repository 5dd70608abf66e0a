package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		secret := newSecret()
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) != 32 || !strings.HasPrefix(secret, "whsec_") || seen[secret] {
			t.Fatal(secret, err)
		}
		seen[secret] = true
	}
}

// Who rotates while something is tried again can check it with the one secret
// as with the other, for a day.
func TestRotationBetweenAttempts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		old := e.Secret
		tell(t, db, 0)
		s.sendDue(e)
		fresh, err := s.Rotate(t.Context(), e)
		if err != nil || fresh == old {
			t.Fatal(fresh, err)
		}
		s.clock.pass(6 * time.Second)
		s.sendDue(e)
		s.clock.pass(25 * time.Hour)
		s.sendDue(e)
		got := r.all()
		if len(got) != 3 {
			t.Fatalf("%d came", len(got))
		}
		for i, want := range []struct{ old, fresh bool }{{true, false}, {true, true}, {false, true}} {
			if verifies(t, old, got[i]) != want.old || verifies(t, fresh, got[i]) != want.fresh {
				t.Errorf("attempt %d: %s", i+1, got[i].header.Get("webhook-signature"))
			}
			if n := len(strings.Fields(got[i].header.Get("webhook-signature"))); want.old && want.fresh != (n == 2) {
				t.Errorf("attempt %d has %d signatures", i+1, n)
			}
			if got[i].header.Get("webhook-id") != got[0].header.Get("webhook-id") {
				t.Error("the id changes")
			}
		}
	})
}

func verifies(t *testing.T, secret string, got *received) bool {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return hook.VerifyIgnoringTimestamp(got.body, got.header) == nil
}

// Receivers in other languages read what is sent.
func TestNodeVerifies(t *testing.T) {
	t.Parallel()
	const dir = "testdata/node"
	testkit.NPM(t, dir)
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newReceiver(t)
	e := s.add(Wish{URL: r.URL})
	old := e.Secret
	fresh, err := s.Rotate(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s.Store, synth.Options{Tools: 40, Seed: 3})
	s.sendDue(e)
	if _, err := s.Test(t.Context(), s.find(e.ID)); err != nil {
		t.Fatal(err)
	}
	var input, want bytes.Buffer
	line := func(secret string, one *received, body string) {
		headers := map[string]string{}
		for name := range one.header {
			headers[strings.ToLower(name)] = one.header.Get(name)
		}
		text, err := json.Marshal(map[string]any{"secret": secret, "headers": headers, "body": body})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&input, "%s\n", text)
	}
	if len(r.all()) < 40 {
		t.Fatalf("%d came", len(r.all()))
	}
	for _, one := range r.all() {
		for _, secret := range []string{old, fresh} {
			line(secret, one, string(one.body))
			fmt.Fprintf(&want, "ok %s\n", one.header.Get("webhook-id"))
		}
	}
	line(newSecret(), r.all()[0], string(r.all()[0].body))
	line(fresh, r.all()[0], string(r.all()[0].body)+" ")
	want.WriteString(strings.Repeat("refused No matching signature found\n", 2))
	cmd := exec.CommandContext(t.Context(), "node", "verify.mjs")
	cmd.Dir, cmd.Stdin = dir, &input
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want.String() {
		t.Errorf("%v: got\n%s\nwant\n%s", err, out, want.String())
	}
}
