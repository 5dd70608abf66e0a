package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	edgeTools    = 5_000
	edgeURLs     = 1_000
	edgeRate     = 200 // requests per second
	edgePeriod   = time.Minute
	edgeCheck    = 20 * time.Second // to compare the responses of a release before the next one
	edgeFreshIn  = 2 * time.Second
	edgeHitGoal  = 0.95
	edgeZipf     = 1.1
	edgeReleases = 10 // or EDGE_RELEASES
)

// edge measures Varnish in front of a server through releases that each change 1% of
// the tools: how many responses come from Varnish, and how many are outdated two seconds
// after an import.
func edge(t testing.TB) {
	releases, err := strconv.Atoi(os.Getenv("EDGE_RELEASES"))
	if err != nil {
		releases = edgeReleases
	}
	cfg := newCatalog(t, "PostgreSQL", edgeTools)
	front := testkit.FreeAddress(t)
	server := load.Serve(t, cfg, "PALMARES_PURGE_URL=http://"+front+"/.purge", "PALMARES_PURGE_HEADER="+testkit.VarnishToken)
	waitUntilReady(t, server.Address)
	testkit.StartVarnish(t, front, server.Address)

	clients := &edgeClients{front: front, urls: edgePaths(t, server.Address)}
	clients.next()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { clients.run(ctx) })
	base, err := os.ReadFile(feed(t, edgeTools, 1))
	check.OK(t, err)
	table := load.NewTable("release", "import", "requests", "hits", "ratio", "goal", "checked URLs", "outdated", "goal")
	var requests, hits, outdated, coldRequests, coldHits int
	for release := 1; release <= releases; release++ {
		start := time.Now()
		idle := clients.next()
		took, _ := importFeed(t, cfg, blackbox.WriteFile(t, "feed.ndjson", edgeFeed(base, release)))
		time.Sleep(edgeFreshIn)
		fresh := clients.next() // until now, responses may be of either release
		time.Sleep(max(0, edgePeriod-edgeCheck-time.Since(start)))
		checked := clients.next()
		stale := 0
		for url, bodies := range checked.bodies {
			delete(bodies, sha256.Sum256(edgeGet(t, server.Address, url)))
			if stale += len(bodies); len(bodies) > 0 {
				progress("release %d: outdated response to %s", release, url)
			}
		}
		n, found := idle.requests+fresh.requests+checked.requests, idle.hits+fresh.hits+checked.hits
		table.Add(release, took.Round(time.Millisecond), n, found, ratio(found, n), edgeHitGoal, len(checked.bodies), stale, 0)
		requests, hits, outdated = requests+n, hits+found, outdated+stale
		if release == 1 { // fills the empty cache
			coldRequests, coldHits = n, found
		}
		time.Sleep(max(0, edgePeriod-time.Since(start)))
	}
	stop()
	running.Wait()
	table.Add("all", "", requests, hits, ratio(hits, requests), edgeHitGoal, "", outdated, 0)
	table.Add("all but the first", "", requests-coldRequests, hits-coldHits, ratio(hits-coldHits, requests-coldRequests), edgeHitGoal, "", "", "")
	table.Print(os.Stdout)
}

func ratio(part, of int) string { return fmt.Sprintf("%.3f", float64(part)/float64(max(of, 1))) }

// edgePaths returns URLs from the most to the least requested: of ten, five are
// details, three filtered lists and two pages.
func edgePaths(t testing.TB, address string) (paths []string) {
	slugs := fetchSlugs(t, address, "/api/v1/tools?limit=100&sort=name_asc&")
	random := rand.New(rand.NewPCG(39, 1))
	random.Shuffle(len(slugs), func(i, j int) { slugs[i], slugs[j] = slugs[j], slugs[i] })
	var categories []string
	for _, match := range regexp.MustCompile(`"slug":"([^"]+)"`).FindAllSubmatch(fetch(t, "http://"+address+"/api/v1/categories"), -1) {
		categories = append(categories, string(match[1]))
	}
	for i := range edgeURLs {
		slug, category := slugs[i], categories[i%len(categories)]
		switch i % 10 {
		case 1, 4, 7:
			paths = append(paths, fmt.Sprintf("/api/v1/tools?category=%s&score_min=%d&page=%d", category, i/10%9, 1+i/100))
		case 3, 8:
			paths = append(paths, [4]string{"/en/tools/" + slug, "/fr/tools/" + slug, "/en/categories/" + category + "?page=" + strconv.Itoa(1+i/50), "/fr/tools?page=" + strconv.Itoa(1+i/20)}[i/10%4])
		default:
			paths = append(paths, "/api/v1/tools/"+slug)
		}
	}
	return paths
}

var scorePattern = regexp.MustCompile(`"score":[0-9.]+`)

// edgeFeed returns a feed of the next days, in which every hundredth tool has another
// score.
func edgeFeed(base []byte, release int) []byte {
	lines := bytes.SplitAfter(base, []byte("\n"))
	lines[0] = regexp.MustCompile(`20\d\d-\d\d-\d\d`).ReplaceAll(lines[0], fmt.Appendf(nil, "2026-02-%02d", release))
	tool := 0
	for i, line := range lines {
		if !bytes.HasPrefix(line, []byte(`{"type":"tool"`)) {
			continue
		}
		if tool++; tool%100 < release { // earlier changes stay
			lines[i] = scorePattern.ReplaceAll(line, fmt.Appendf(nil, `"score":%d.%d`, tool%10, tool/100%10))
		}
	}
	return bytes.Join(lines, nil)
}

// edgeGet reads a URL from an address, as a client of its own network, because
// anonymous clients have a quota.
func edgeGet(t testing.TB, address, url string) []byte {
	_, body, err := edgeDo(t.Context(), address, url)
	check.OK(t, err)
	return body
}

func edgeDo(ctx context.Context, address, url string) (*http.Response, []byte, error) {
	n := rand.Uint32()
	return load.Do(ctx, load.Client, "http://"+address+url, "", "X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", n>>16, n&0xffff))
}

// edgeClients send requests to Varnish.
type edgeClients struct {
	front string
	urls  []string

	mu  sync.Mutex
	now *edgePart
}

// edgePart is a part of the run.
type edgePart struct {
	requests, hits int
	bodies         map[string]map[[32]byte]bool // hashes by URL, of requests that were sent in this part
}

// next begins the next part and returns the last one, or nil.
func (c *edgeClients) next() *edgePart {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.now
	c.now = &edgePart{bodies: map[string]map[[32]byte]bool{}}
	return last
}

// run sends requests at a fixed rate until ctx ends.
func (c *edgeClients) run(ctx context.Context) {
	ranks := rand.NewZipf(rand.New(rand.NewPCG(39, 2)), edgeZipf, 1, uint64(len(c.urls)-1))
	ticks := time.NewTicker(time.Second / edgeRate)
	defer ticks.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			url := c.urls[ranks.Uint64()]
			running.Go(func() { c.send(ctx, url) })
		}
	}
}

func (c *edgeClients) send(ctx context.Context, url string) {
	c.mu.Lock()
	sent := c.now
	c.mu.Unlock()
	response, body, err := edgeDo(ctx, c.front, url)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || response.StatusCode != http.StatusOK {
		if ctx.Err() == nil {
			progress("%s: got %v %v, want 200", url, response, err)
		}
		return
	}
	c.now.requests++
	if response.Header.Get("X-Cache") == "hit" {
		c.now.hits++
	}
	if sent.bodies[url] == nil {
		sent.bodies[url] = map[[32]byte]bool{}
	}
	sent.bodies[url][sha256.Sum256(body)] = true
}
