package guides_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
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
	dashboards := newReader(t, cfg, s, "dashboards").saveAll("live.mjs")
	webhooks := newReader(t, cfg, s, "webhooks").saveAll("catchup.py")
	caching := newReader(t, cfg, s, "caching").saveAll("cached.mjs")
	prints := func(r *reader, command, until, want string) {
		t.Helper()
		got := r.shell(command, until)
		check.True(t, strings.TrimSpace(got) == want, "%s: got %q, want %q", command, got, want)
	}
	listening := dashboards.start("node live.mjs")
	check.OK(t, listening.waitFor("release 1 of 2026-11-10: 48 tools"))
	waitForFile(t, filepath.Join(dashboards.dir, "last-release.txt")) // or the release would be reported again
	listening.stop()
	webhooks.shell("python3 catchup.py", "")
	prints(caching, "node cached.mjs", "", "8 categories, updated")

	publish(t, cfg, s, 2, revised(t, 2))
	prints(dashboards, "node live.mjs", "tools", "release 2 of 2026-11-11: 47 tools")
	got := webhooks.shell("python3 catchup.py", "")
	check.True(t, got != "0 events\n", "got no new events, want some")
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

// publish imports a feed and waits until the server serves it.
func publish(t *testing.T, cfg store.Config, s *blackbox.Server, release float64, feed []byte) {
	t.Helper()
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "feed.ndjson", feed)))
	wait.Until(t, "the release is served", func() bool {
		_, body := s.Get(t, "/readyz")
		return body["release"] == release
	})
}

// revised returns a later release of the demo catalog. Release 2 has a new review of
// plume and another score of aiguillage, and lacks a tool that nothing else refers
// to. Release 3 also retires a tool and takes one out of the embeddings set. Release
// 4 takes out another one instead.
func revised(t *testing.T, release int) []byte {
	t.Helper()
	score := regexp.MustCompile(`"score":[0-9.]+`)
	unimportant := func(line string) string {
		return regexp.MustCompile(`"tier":[12]`).ReplaceAllString(score.ReplaceAllString(line, `"score":5`), `"tier":3`)
	}
	var feed []string
	for line := range strings.Lines(string(demo.Catalog())) {
		var rec struct{ Type, Slug, Name, Category string }
		check.OK(t, json.Unmarshal([]byte(line), &rec))
		switch rec.Type {
		case "feed":
			line = strings.Replace(line, "2026-11-10", fmt.Sprintf("2026-11-%d", 9+release), 1)
		case "tool":
			switch {
			case release == 4 && rec.Slug == "double-cloison":
				line = unimportant(line)
			case release == 4:
			case rec.Slug == "plume":
				line = strings.Replace(line, `{"section":"verdict","text":"`, `{"section":"verdict","text":"Nous l'avons relu. `, 1)
			case rec.Slug == "aiguillage":
				line = score.ReplaceAllString(line, `"score":8.05`)
			case rec.Slug == "rushes-propres":
				line = ""
			case release == 3 && rec.Slug == "pixel-argile":
				line = unimportant(line)
			case release == 3 && rec.Slug == "echo-alcove":
				line = fmt.Sprintf(`{"type":"cimetiere","slug":%q,"name":%q,"category":%q,"reason":"mort","retired_at":"2026-11-11","note":"Fermé."}`+"\n", rec.Slug, rec.Name, rec.Category)
			}
		}
		feed = append(feed, line)
	}
	return []byte(strings.Join(feed, ""))
}

// The vector store of the guide has exactly the documents of each release.
func TestGuideKeepsVectorStoreInSync(t *testing.T) {
	t.Parallel()
	installTools(t)
	cfg := blackbox.Demo(t)
	s := blackbox.Serve(t, cfg, "--demo")
	r := newReader(t, cfg, s, "embeddings").saveAll("sync.mjs")
	r.key = blackbox.NewKey(t, cfg, "developer")
	for _, b := range r.blocks {
		if strings.HasPrefix(b.text, "npm install") {
			check.OK(t, r.run(b))
		}
	}
	check.OK(t, os.WriteFile(filepath.Join(r.dir, "dump.mjs"), []byte(`
		import { PGlite } from "@electric-sql/pglite";
		import { vector } from "@electric-sql/pglite/vector";
		const db = new PGlite("vectors", { extensions: { vector } });
		const { rows } = await db.query("SELECT slug, section, text, metadata FROM chunks WHERE embedding IS NOT NULL");
		console.log(JSON.stringify(rows));
		await db.close();`), 0o600))
	synced := func(want string) {
		t.Helper()
		check.Equal(t, strings.TrimSpace(r.shell("API_KEY=YOUR_KEY node sync.mjs", "")), want)
		stored := map[string]string{}
		var rows []struct {
			Slug, Section, Text string
			Metadata            map[string]any
		}
		check.OK(t, json.Unmarshal([]byte(r.shell("node dump.mjs", "")), &rows))
		for _, row := range rows {
			stored[row.Slug+"#"+row.Section] = fmt.Sprint(row.Text, row.Metadata)
		}
		served := map[string]string{}
		_, catalog := s.Get(t, "/api/v1/tools?limit=200")
		for _, tool := range catalog["data"].([]any) {
			slug := tool.(map[string]any)["slug"].(string)
			response := s.Call(t, http.MethodGet, "/api/embeddings/"+slug, "", "Authorization", "Bearer "+r.key)
			var document struct {
				Chunks []struct {
					ID, Text string
					Metadata map[string]any
				}
			}
			check.OK(t, json.Unmarshal([]byte(blackbox.ReadAll(t, response.Body)), &document))
			for _, chunk := range document.Chunks {
				served[slug+"#"+chunk.ID] = fmt.Sprint(chunk.Text, chunk.Metadata)
			}
		}
		check.True(t, len(served) != 0 && maps.Equal(stored, served), "vector store: got %d chunks %v, want those of the catalog, %d chunks %v", len(stored), stored, len(served), served)
	}
	synced("18 embedded, 0 updated, 0 deleted")
	publish(t, cfg, s, 2, revised(t, 2))
	synced("1 embedded, 1 updated, 1 deleted")
	publish(t, cfg, s, 3, revised(t, 3))
	synced("0 embedded, 0 updated, 2 deleted")
	synced("0 embedded, 0 updated, 0 deleted")
	// Without the history, the token is too old and the whole set is read.
	publish(t, cfg, s, 4, revised(t, 4))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before", "4", "--yes"))
	synced("4 embedded, 13 updated, 1 deleted")
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
