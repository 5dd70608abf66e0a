package main

import (
	"bytes"
	"cmp"
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

// edge measures Varnish in front of a server after releases that each change 1% of
// the tools: how many responses come from Varnish, and how many of those are outdated two
// seconds after an import or later. EDGE_RELEASES is the number of releases (10).
func edge(b *bed) {
	if b.kind != "PostgreSQL" {
		return
	}
	const rate, requests, freshIn = 200, 12_000, 2 * time.Second
	releases := check.Try(strconv.Atoi(cmp.Or(os.Getenv("EDGE_RELEASES"), "10"))).OK(b)
	front := testkit.FreeAddress(b)
	b.serve(5_000, "PALMARES_PURGE_URL=http://"+front+"/.purge", "PALMARES_PURGE_HEADER="+testkit.VarnishToken)
	testkit.StartVarnish(b, front, b.server.Address)
	urls := b.edgePaths()
	ranks := rand.NewZipf(rand.New(rand.NewPCG(39, 2)), 1.1, 1, uint64(len(urls)-1))
	ticks := time.NewTicker(time.Second / rate)
	defer ticks.Stop()
	for release := 1; release <= releases; release++ {
		took := b.importEdited(5_000, release, true)
		var mu sync.Mutex
		var running sync.WaitGroup
		hits, compared, outdated := 0, 0, 0
		for start, n := time.Now(), 0; n < requests; n++ {
			<-ticks.C
			url, isFresh := urls[ranks.Uint64()], time.Since(start) > freshIn
			running.Go(func() {
				response, body := b.edgeGet(front, url)
				if response.Header.Get("X-Cache") != "hit" {
					return
				}
				mu.Lock()
				hits++
				mu.Unlock()
				if !isFresh {
					return
				}
				_, now := b.edgeGet(b.server.Address, url)
				mu.Lock()
				defer mu.Unlock()
				if compared++; !bytes.Equal(body, now) {
					outdated++
					progress("release %d: outdated response to %s", release, url)
				}
			})
		}
		running.Wait()
		b.Add(release, milli(took), requests, hits, fmt.Sprintf("%.1f%%", float64(hits)*100/requests), "95%", compared, outdated, 0)
	}
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

// edgeGet reads a URL as a client of its own network, because anonymous clients have a quota.
func (b *bed) edgeGet(address, url string) (*http.Response, []byte) {
	n := rand.Uint32()
	client := fmt.Sprintf("2001:db8:%x:%x::1", n>>16, n&0xffff)
	response, body, err := load.Do(b.Context(), load.Client, "http://"+address+url, "", "X-Forwarded-For", client)
	check.OK(b, err)
	check.MustTrue(b, response.StatusCode == http.StatusOK, "%s: got %s, want 200", url, response.Status)
	return response, body
}
