package guides_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// receive starts a webhook receiver from a guide, has palmares send an event to
// it, and then sends forged events. The receiver listens on a free port instead
// of the one in the guide, which other tests may use.
func (r *reader) receive(b block) error {
	file := regexp.MustCompile(`receiver\.\w+`).FindString(b.text)
	code, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		return err
	}
	address := testkit.FreeAddress(r)
	_, port, _ := net.SplitHostPort(address)
	if strings.Count(string(code), "8000") != 1 {
		return fmt.Errorf("%s: got port 8000 %d times, want once", file, strings.Count(string(code), "8000"))
	}
	if err := os.WriteFile(filepath.Join(r.dir, file), bytes.Replace(code, []byte("8000"), []byte(port), 1), 0o600); err != nil {
		return err
	}
	owner := strings.ReplaceAll(file, ".", "-") + "@example.com"
	blackbox.MustRun(r, blackbox.Command(r, r.cfg, "accounts", "create", owner, "--plan", "pro"))
	added := blackbox.MustRun(r, blackbox.Command(r, r.cfg, "webhooks", "add", owner, "http://"+address, "--events", "catalog.published"))
	endpoint := regexp.MustCompile(`Endpoint (\d+)`).FindStringSubmatch(added.Err)
	if endpoint == nil {
		return fmt.Errorf("adding an endpoint: got %s, want its number", added.Err)
	}
	secret := strings.TrimSpace(added.Out)
	p := r.start(strings.ReplaceAll(b.text, "YOUR_SECRET", "'"+secret+"'"))
	defer p.stop()
	if err := p.waitFor(b.Until); err != nil {
		return err
	}
	if sent := blackbox.Run(r, blackbox.Command(r, r.cfg, "webhooks", "test", endpoint[1])); !strings.Contains(sent.Out, "delivered: status 204") {
		return fmt.Errorf("valid event: got %s%s, want it accepted", sent.Out, sent.Err)
	}
	r.attack(address, secret)
	if err := p.waitFor("got webhook.test"); err != nil {
		return err
	}
	for _, processed := range []string{"got price.changed plume", "got tool.created pinceau"} {
		if err := p.waitFor(processed); err != nil {
			return err
		}
	}
	r.last = p.out.String()
	if n := strings.Count(r.last, "got price.changed plume"); n != 1 {
		r.Errorf("%s: got an event processed %d times, want once:\n%s", file, n, r.last)
	}
	if strings.Contains(r.last, "forged") {
		r.Errorf("%s: got a forged event processed, want it rejected:\n%s", file, r.last)
	}
	return nil
}

// attack sends valid and forged events.
func (r *reader) attack(address, secret string) {
	r.Helper()
	const id, event = "evt_7", `{"id":"evt_7","type":"price.changed","slug":"plume"}`
	const forged = `{"id":"evt_7","type":"price.changed","slug":"forged"}`
	other := "whsec_" + strings.Repeat("QUJD", 8)
	now := time.Now()
	const batchID, batch = "batch_7_0123456789abcdef", `{"id":"batch_7_0123456789abcdef","type":"events.batch","data":{"events":[` + event + `,{"id":"evt_9","type":"tool.created","slug":"pinceau"}]}}`
	signMessage := func(secret string, at time.Time, id, body string) string {
		hook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			r.Fatal(err)
		}
		signature, err := hook.Sign(id, at, []byte(body))
		if err != nil {
			r.Fatal(err)
		}
		return signature
	}
	sign := func(secret string, at time.Time) string { return signMessage(secret, at, id, event) }
	seconds := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
	good, old, future := sign(secret, now), now.Add(-6*time.Minute), now.Add(6*time.Minute)
	for _, c := range []struct {
		what                     string
		status                   int // 0 for any status but 2xx
		id, at, signatures, body string
	}{
		{"valid", 204, id, seconds(now), good, event},
		{"the same event again", 204, id, seconds(now), good, event},
		{"a batch with the same event", 204, batchID, seconds(now), signMessage(secret, now, batchID, batch), batch},
		{"one of two signatures", 204, id, seconds(now), sign(other, now) + " " + good, event},
		{"a few minutes late", 204, id, seconds(now.Add(-4 * time.Minute)), sign(secret, now.Add(-4*time.Minute)), event},
		{"another body", 401, id, seconds(now), good, forged},
		{"another id", 401, "evt_8", seconds(now), good, event},
		{"another time", 401, id, seconds(now.Add(time.Second)), good, event},
		{"another secret", 401, id, seconds(now), sign(other, now), event},
		{"another version", 401, id, seconds(now), strings.Replace(good, "v1,", "v2,", 1), event},
		{"half a signature", 401, id, seconds(now), good[:20], event},
		{"no signature", 401, id, seconds(now), "", event},
		{"signed, but old", 401, id, seconds(old), sign(secret, old), event},
		{"signed, but from the future", 401, id, seconds(future), sign(secret, future), event},
		{"old event with a new timestamp", 401, id, seconds(now), sign(secret, old), event},
		{"invalid time", 401, id, "soon", good, event},
		{"nothing at all", 401, "", "", "", ""},
		{"far too large", 0, id, seconds(now), good, strings.Repeat("x", 1_000_000)},
	} {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://"+address, strings.NewReader(c.body))
		if err != nil {
			r.Fatal(err)
		}
		for name, value := range map[string]string{"webhook-id": c.id, "webhook-timestamp": c.at, "webhook-signature": c.signatures} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		status := 0
		if response, err := http.DefaultClient.Do(request); err == nil {
			status = response.StatusCode
			_ = response.Body.Close()
		} else if c.status != 0 {
			r.Errorf("%s: got %v, want %d", c.what, err, c.status)
			continue
		}
		if c.status != 0 && status != c.status || c.status == 0 && status >= 200 && status < 300 {
			r.Errorf("%s: got %d, want %d", c.what, status, c.status)
		}
	}
}

// Programs from the guides that store their state continue from it after a new
// release.
func TestGuidesAfterRelease(t *testing.T) {
	t.Parallel()
	installTools(t)
	cfg := blackbox.Demo(t)
	s := blackbox.Serve(t, cfg, "--demo")
	key := blackbox.NewKey(t, cfg, "developer")
	embeddings := newReader(t, cfg, s, "embeddings").saveAll("sync.py")
	embeddings.key = key
	dashboards := newReader(t, cfg, s, "dashboards").saveAll("live.mjs")
	webhooks := newReader(t, cfg, s, "webhooks").saveAll("catchup.py")
	caching := newReader(t, cfg, s, "caching").saveAll("cached.mjs")
	prints := func(r *reader, command, until, want string) {
		t.Helper()
		if got := r.shell(command, until); strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	const sync = "API_KEY=YOUR_KEY python3 sync.py"
	prints(embeddings, sync, "", "18 embedded, 0 deleted, 0 unchanged")
	listening := dashboards.start("node live.mjs")
	if err := listening.waitFor("release 1 of 2026-11-10: 48 tools"); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, filepath.Join(dashboards.dir, "last-release.txt")) // or the release would be reported again
	listening.stop()
	webhooks.shell("python3 catchup.py", "")
	prints(caching, "node cached.mjs", "", "8 categories, updated")

	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "feed.ndjson", revisedCatalog(t))))
	wait.Until(t, "the release is served", func() bool {
		_, body := s.Get(t, "/readyz")
		return body["release"] == 2.0
	})
	prints(embeddings, sync, "", "1 embedded, 1 deleted, 16 unchanged")
	prints(embeddings, sync, "", "0 embedded, 0 deleted, 17 unchanged")
	prints(dashboards, "node live.mjs", "tools", "release 2 of 2026-11-11: 47 tools")
	if got := webhooks.shell("python3 catchup.py", ""); got == "0 events\n" {
		t.Error("got no new events, want some")
	}
	prints(webhooks, "python3 catchup.py", "", "0 events")
	prints(caching, "node cached.mjs", "", "8 categories, updated")
	prints(caching, "node cached.mjs", "", "8 categories, unchanged")
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	wait.Until(t, "the file "+path+" exists", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// revisedCatalog returns the demo catalog a day later, with a revised review of
// one tool and without a tool that nothing else refers to.
func revisedCatalog(t *testing.T) []byte {
	t.Helper()
	var feed []string
	for line := range strings.Lines(string(demo.Catalog)) {
		switch {
		case strings.HasPrefix(line, `{"type":"feed"`):
			line = strings.Replace(line, "2026-11-10", "2026-11-11", 1)
		case strings.HasPrefix(line, `{"type":"tool","slug":"plume",`):
			line = strings.Replace(line, `{"section":"verdict","text":"`, `{"section":"verdict","text":"Nous l'avons relu. `, 1)
		case strings.HasPrefix(line, `{"type":"tool","slug":"rushes-propres",`):
			continue
		}
		feed = append(feed, line)
	}
	return []byte(strings.Join(feed, ""))
}

// Programs from the guides stop when the quota is used up.
func TestGuidesWithoutQuota(t *testing.T) {
	t.Parallel()
	installTools(t)
	cfg := blackbox.Demo(t)
	s := blackbox.Serve(t, cfg, "--demo")
	quotas := newReader(t, cfg, s, "quotas").saveAll("polite.py")
	for range 100 {
		s.Call(t, http.MethodGet, "/api/v1/stats", "")
	}
	p := quotas.start("env -u API_KEY python3 polite.py")
	defer p.stop()
	if err := <-p.done; err == nil || !regexp.MustCompile(`^Quota exceeded\. Try again in \d+ h \d+ min\.\n$`).MatchString(p.err.String()) {
		t.Errorf("got %v: %s%s, want an error about the quota", err, p.out.String(), p.err.String())
	}
}
