package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	gosync "sync"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// cluster is three servers with Redis and PostgreSQL behind proxies, one for each
// connection, so that each can fail by itself.
type cluster struct {
	t        testing.TB
	cfg      store.Config // for commands, without a proxy
	postgres *testkit.Cluster
	redis    *testkit.RedisServer
	proxies  *testkit.Toxiproxy
	servers  []*server
	edition  int
	start    time.Time // when the history started
}

type server struct {
	cfg     store.Config
	address string
	env     []string
	process *blackbox.Server
	logs    []*testkit.Log
}

func startCluster(t testing.TB) *cluster {
	postgres := testkit.StartCluster(t, "fsync=off")
	c := &cluster{
		t: t, postgres: postgres, cfg: store.Config{DatabaseURL: postgres.URL, DataDir: t.TempDir()},
		redis: testkit.StartRedis(t), proxies: testkit.StartToxiproxy(t), start: time.Now(), edition: 10,
	}
	check.OK(t, c.publish())
	for i := range maxServers {
		s := &server{address: testkit.FreeAddress(t), cfg: store.Config{DataDir: c.cfg.DataDir}}
		s.cfg.DatabaseURL = c.proxies.Between(postgresOf(i), postgres.URL)
		s.env = []string{"PALMARES_LISTEN=" + s.address, "REDIS_URL=" + c.proxies.Between(redisOf(i), c.redis.URL)}
		c.servers = append(c.servers, s)
		c.startServer(i)
	}
	return c
}

func redisOf(server int) string    { return fmt.Sprintf("redis-%d", server) }
func postgresOf(server int) string { return fmt.Sprintf("postgres-%d", server) }

// startServer starts a server at the same address as before.
func (c *cluster) startServer(i int) {
	s := c.servers[i]
	s.process = load.Serve(c.t, s.cfg, s.env...)
	s.logs = append(s.logs, s.process.Log)
	for range 400 {
		if response, _ := c.get(i, "/readyz"); response != nil && response.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatalf("got a server that is not ready, want a ready one\n%s", s.process.Log)
}

func (c *cluster) stop(i int, signal syscall.Signal) {
	_ = c.servers[i].process.Cmd.Process.Signal(signal)
	c.servers[i].process.WaitForExit(c.t)
}

// outages returns how often servers have logged that Redis does not respond.
func (c *cluster) outages() (n int) {
	for _, s := range c.servers {
		for _, log := range s.logs {
			n += strings.Count(log.String(), "redis unavailable")
		}
	}
	return n
}

// waitForRedis waits until no server counts locally.
func (c *cluster) waitForRedis() {
	for range 400 {
		down := 0
		for _, s := range c.servers {
			log := s.process.Log.String()
			if strings.Count(log, "redis unavailable") > strings.Count(log, "redis available again") {
				down++
			}
		}
		if down == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.t.Fatal("got servers without Redis, want all connected again")
}

// now returns the time since the history started.
func (c *cluster) now() int64 { return int64(time.Since(c.start)) }

const clientTimeout = 5 * time.Second

// get sends a request to a server. It returns nil without a response.
func (c *cluster) get(server int, path string, headers ...string) (*http.Response, []byte) {
	response, body, _ := c.try(server, path, headers...)
	return response, body
}

// try is get that also reports whether the server can have received the request.
func (c *cluster) try(server int, path string, headers ...string) (response *http.Response, body []byte, sent bool) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	response, body, err := load.Do(ctx, client, "http://"+c.servers[server].address+path, "", headers...)
	if err != nil {
		var failure *net.OpError
		return nil, nil, !errors.As(err, &failure) || failure.Op != "dial"
	}
	return response, body, true
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, IdleConnTimeout: 2 * time.Second}}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// publish imports the next edition: forty tools, of which about a fourth change, and
// some are absent.
func (c *cluster) publish() error {
	c.edition++
	var out bytes.Buffer
	date := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, c.edition).Format(time.DateOnly)
	w := feed.NewWriter(&out, date)
	w.Write(&record.Category{Slug: "code", Label: "Code"})
	for i := range 40 {
		changed := c.edition - (c.edition+i*i)%4 // the edition that this text is from
		if (c.edition/3+i*7)%11 == 0 {
			continue
		}
		slug, score := fmt.Sprintf("outil-%d", i), float64(changed%100)/10
		w.Write(&record.Tool{
			Slug: slug, Name: fmt.Sprintf("Outil %d", i), Domain: slug + ".example", Category: "code",
			ICP: "mixte", Pricing: "payant", Price: fmt.Sprintf("%d €/mois", 1+changed%50), Score: &score,
			Tagline: fmt.Sprintf("Édition %d.", changed), CanonicalURL: "https://palmares.example/" + slug, AlternativesURL: "https://palmares.example/alternatives/" + slug,
			UpdatedAt: "2020-01-01", Tier: 1, Sections: []record.Section{{Section: "verdict", Text: fmt.Sprintf("Texte de l’édition %d.", changed)}},
		})
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return c.run(&out, "import", "-")
}

func (c *cluster) run(input *bytes.Buffer, args ...string) error {
	cmd := blackbox.Command(c.t, c.cfg, args...)
	if input != nil {
		cmd.Stdin = input
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("palmares %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}

// runPostgres runs one of PostgreSQL's programs. Restoring a backup may deadlock with
// the servers' queries, and is then tried again.
func (c *cluster) runPostgres(name string, args ...string) {
	c.t.Helper()
	path := filepath.Join(testkit.PostgreSQL.Ensure(c.t), name)
	for try := 1; ; try++ {
		out, err := exec.Command(path, args...).CombinedOutput()
		if err == nil {
			return
		}
		if try == 10 || !strings.Contains(string(out), "deadlock") {
			c.t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
}

// inParallel runs a function several times until the context ends.
func inParallel(ctx context.Context, n int, each func(number int)) (wait func()) {
	var running gosync.WaitGroup
	for i := range n {
		running.Go(func() {
			for ctx.Err() == nil {
				each(i)
			}
		})
	}
	return running.Wait
}
