package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/dev/testkit"
)

// The memory part: a server with the default settings receives documents that
// are made to fill its memory, then enough different requests to fill its
// response cache. It must stay small, and a cached response must cost the same
// CPU time as before.

const (
	hostileDocuments = 5_000
	distinctRequests = 8_000
	hitsMeasured     = 40_000
	fullCacheGoal    = 300 * megabyte
	hitGoal          = 1.2
)

// memory runs the part on both databases, and fails if a goal is missed.
func (b *bench) memory(ctx context.Context) error {
	address, drop, err := testkit.Scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	fmt.Println("| database | hit, fresh server | hit, full cache | ratio | goal | resident | peak | goal |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	return errors.Join(
		b.fillMemory("SQLite", []string{"PALMARES_DATA_DIR=" + b.dir + "/memory"}),
		b.fillMemory("PostgreSQL", []string{"DATABASE_URL=" + address}),
	)
}

func (b *bench) fillMemory(database string, env []string) error {
	if _, err := b.process(env, "import", b.feed(5_000)); err != nil {
		return err
	}
	key, err := b.key(env)
	if err != nil {
		return err
	}
	server, err := b.serve(env)
	if err != nil {
		return err
	}
	defer server.stop()
	c := caller{server: server, key: key}
	fresh, err := c.cpuPerHit()
	if err != nil {
		return err
	}
	if err := c.repeat(hostileDocuments, func(i int) *http.Request { return c.post(hostileDocument(i)) }); err != nil {
		return err
	}
	if err := c.repeat(distinctRequests, func(i int) *http.Request {
		return c.get(fmt.Sprintf("/api/v1/tools?score_min=0.%06d", i))
	}); err != nil {
		return err
	}
	full, err := c.cpuPerHit()
	if err != nil {
		return err
	}
	ratio, resident, peak := float64(full)/float64(fresh), server.memory(), server.peak()
	fmt.Printf("| %s | %s | %s | %.2f | %.1f | %s | %s | %s |\n", database,
		fresh.Round(100*time.Nanosecond), full.Round(100*time.Nanosecond), ratio, hitGoal, bytes(resident), bytes(peak), bytes(fullCacheGoal))
	if ratio > hitGoal || peak > fullCacheGoal {
		return fmt.Errorf("%s: a goal is missed", database)
	}
	return nil
}

// hostileDocument is a request of some 8 kB that no other equals. Every other
// one is accepted, and holds as many values as the limits allow; the rest are
// refused for one long list.
func hostileDocument(i int) string {
	values := strings.Repeat(`\"c\" `, 60)
	if i%2 == 1 {
		return fmt.Sprintf(`{"query":"query Q%d {tools(filter: {categories: [%s]}) {meta {total}}}"}`, i, strings.Repeat(values, 30))
	}
	var query strings.Builder
	for alias := range 20 {
		fmt.Fprintf(&query, "a%d: tools(limit: 1, filter: {categories: [%s]}) {meta {total}} ", alias, values)
	}
	return fmt.Sprintf(`{"query":"query Q%d($f: ToolFilter) {%s b: tools(limit: 1, filter: $f) {meta {total}}}","variables":{"f":{"categories":[%s"x%d"]}}}`,
		i, query.String(), strings.Repeat(`"c",`, 90), i)
}

// caller sends requests with a Pro key.
type caller struct {
	server *running
	key    string
}

func (c caller) get(path string) *http.Request { return c.request(http.MethodGet, path, "") }

func (c caller) post(body string) *http.Request {
	r := c.request(http.MethodPost, "/graphql", body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func (c caller) request(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, "http://"+c.server.address+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the paths above are wrong
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	return r
}

// repeat sends n requests on a few connections.
func (c caller) repeat(n int, request func(i int) *http.Request) error {
	const workers = 4
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var all sync.WaitGroup
	failures := make([]error, workers)
	for worker := range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				response, err := client.Do(request(i))
				if err != nil {
					failures[worker] = err
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					failures[worker] = fmt.Errorf("request %d: got %s", i, response.Status)
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// cpuPerHit is the server's CPU time for one cached response.
func (c caller) cpuPerHit() (time.Duration, error) {
	hit := func(int) *http.Request { return c.get("/api/v1/tools") }
	if err := c.repeat(1_000, hit); err != nil {
		return 0, err
	}
	before, err := c.server.cpu()
	if err != nil {
		return 0, err
	}
	if err := c.repeat(hitsMeasured, hit); err != nil {
		return 0, err
	}
	after, err := c.server.cpu()
	return (after - before) / hitsMeasured, err
}

// cpu is the CPU time that the process has used.
func (r *running) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces; utime and stime are fields 14
	// and 15, in hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
