package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
)

const (
	edgeTools   = 5_000
	edgeRate    = 200 // requests per second
	edgePeriod  = time.Minute
	edgeCheck   = 20 * time.Second // to compare the responses of a release before the next one
	edgeFreshIn = 2 * time.Second
	edgeHitGoal = 0.95
)

// edge measures Varnish in front of a server through releases that each change 1% of
// the tools: how many responses come from Varnish, and how many are outdated two seconds
// after an import. EDGE_RELEASES is their number (10).
func edge(b *bed) {
	if b.kind != "PostgreSQL" {
		return
	}
	releases := check.Try(strconv.Atoi(cmp.Or(os.Getenv("EDGE_RELEASES"), "10"))).OK(b)
	front := testkit.FreeAddress(b)
	b.serve(edgeTools, "PALMARES_PURGE_URL=http://"+front+"/.purge", "PALMARES_PURGE_HEADER="+testkit.VarnishToken)
	testkit.StartVarnish(b, front, b.server.Address)
	clients := &edgeClients{front: front, urls: b.edgePaths()}
	clients.next()
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { clients.run(ctx) })
	var all, cold edgePart
	add := func(name any, took time.Duration, p edgePart, checked, stale any) {
		b.Add(name, milli(took), p.requests, p.hits, fmt.Sprintf("%.3f", float64(p.hits)/float64(max(p.requests, 1))), edgeHitGoal, checked, stale, 0)
	}
	for release := 1; release <= releases; release++ {
		start := time.Now()
		idle := clients.next()
		took := b.importEdited(edgeTools, release, true)
		time.Sleep(edgeFreshIn)
		fresh := clients.next() // until now, responses may be of either release
		time.Sleep(edgePeriod - edgeCheck - time.Since(start))
		checked := clients.next()
		stale := 0
		for url, bodies := range checked.bodies {
			_, body, err := edgeDo(b.Context(), b.server.Address, url)
			check.OK(b, err)
			delete(bodies, sha256.Sum256(body))
			if stale += len(bodies); len(bodies) > 0 {
				progress("release %d: outdated response to %s", release, url)
			}
		}
		sum := edgePart{requests: idle.requests + fresh.requests + checked.requests, hits: idle.hits + fresh.hits + checked.hits}
		add(release, took, sum, len(checked.bodies), stale)
		all.requests, all.hits = all.requests+sum.requests, all.hits+sum.hits
		if release == 1 { // fills the empty cache
			cold = sum
		}
		time.Sleep(edgePeriod - time.Since(start))
	}
	stop()
	running.Wait()
	add("all", 0, all, "", "")
	add("all but the first", 0, edgePart{requests: all.requests - cold.requests, hits: all.hits - cold.hits}, "", "")
}

// edgePaths returns 1,000 URLs from the most to the least requested: of ten, five are
// details, three filtered lists and two pages.
func (b *bed) edgePaths() (paths []string) {
	slugs, categories := b.fetchSlugs("/api/v1/tools?limit=100&sort=name_asc&"), b.fetchSlugs("/api/v1/categories?")
	random := rand.New(rand.NewPCG(39, 1))
	random.Shuffle(len(slugs), func(i, j int) { slugs[i], slugs[j] = slugs[j], slugs[i] })
	for i := range 1_000 {
		slug, category := slugs[i], categories[i%len(categories)]
		path := "/api/v1/tools/" + slug
		switch i % 10 {
		case 1, 4, 7:
			path = fmt.Sprintf("/api/v1/tools?category=%s&score_min=%d&page=%d", category, i/10%9, 1+i/100)
		case 3, 8:
			path = [4]string{"/en/tools/" + slug, "/fr/tools/" + slug, fmt.Sprintf("/en/categories/%s?page=%d", category, 1+i/50),
				fmt.Sprintf("/fr/tools?page=%d", 1+i/20)}[i/10%4]
		}
		paths = append(paths, path)
	}
	return paths
}

// edgeDo reads a URL as a client of its own network, because anonymous clients have a quota.
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
	ranks := rand.NewZipf(rand.New(rand.NewPCG(39, 2)), 1.1, 1, uint64(len(c.urls)-1))
	ticks := time.NewTicker(time.Second / edgeRate)
	defer ticks.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		<-ticks.C
		url := c.urls[ranks.Uint64()]
		running.Go(func() { c.send(ctx, url) })
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
