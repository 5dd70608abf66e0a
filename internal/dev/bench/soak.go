package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"time"
)

// The soak is the only part that fails: over minutes of mixed load, with an
// import every 20 seconds, a server must not grow.

const (
	importEvery  = 20 * time.Second
	moreRoutines = 50
	moreHeap     = 1.5
)

// vitals are what a server has after it has collected.
type vitals struct {
	routines, heap, resident float64
}

func (b *bench) soak(duration time.Duration) error {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	env := []string{"PALMARES_DATA_DIR=" + b.dir + "/soak", "PALMARES_METRICS_LISTEN=" + metrics}
	var feeds []string
	for revision := range 2 {
		feeds = append(feeds, fmt.Sprintf("%s/soak-%d.ndjson", b.dir, revision))
		if _, err := b.process(nil, "generate", "--tools", "2000", "--revision", strconv.Itoa(revision), feeds[revision]); err != nil {
			return err
		}
	}
	if _, err := b.process(env, "import", feeds[0]); err != nil {
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

	end := time.Now().Add(duration)
	loaded := make(chan error, 1)
	go func() { loaded <- mixedLoad(server.address, key, duration) }()
	var first vitals
	for round := 1; time.Now().Before(end); round++ {
		time.Sleep(min(importEvery, time.Until(end)))
		if _, err := b.process(env, "import", "--force", feeds[round%2]); err != nil {
			return err
		}
		now, err := vitalsOf(metrics)
		if err != nil {
			return err
		}
		fmt.Printf("%5s  %3.0f goroutines  %4.1f MB alive  %5.1f MB resident\n",
			(duration - time.Until(end)).Round(time.Second), now.routines, now.heap/megabyte, now.resident/megabyte)
		if round == 2 {
			first = now // warm
		}
		if round > 2 && (now.routines > first.routines+moreRoutines || now.heap > first.heap*moreHeap+10*megabyte) {
			return errors.New("the server grows")
		}
	}
	return <-loaded
}

// mixedLoad asks for everything: hits, misses, 304, GraphQL, wrong requests.
func mixedLoad(address, key string, duration time.Duration) error {
	bearer := "Authorization: Bearer " + key + "\r\n"
	const query = `{"query":"{tools(limit: 20) {items {slug category {label} comparisons {title}}}}"}`
	var mixed load
	for _, l := range []load{
		get("/api/v1/tools", bearer), get("/api/v1/tools?score_min=0.000"+varying, bearer), get("/api/v1/stats", bearer+"If-None-Match: *\r\n"),
		get("/api/v1/tools/nobody-"+varying, bearer), get("/api/v1/tools?page=x", bearer), get("/api/v1/comparatifs?category=code&page="+varying, bearer),
		get("/api/v1/tools", "X-Forwarded-For: 100.64.0."+varying+"\r\n"), get("/api/v1/tools", "Authorization: Bearer nonsense\r\n"),
		get("/api/v1/pricing?limit=200", bearer+"Accept-Encoding: br\r\n"),
	} {
		mixed.Requests = append(mixed.Requests, l.Requests...)
	}
	mixed.Requests = append(mixed.Requests, fmt.Sprintf("POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", len(query), bearer, query))
	mixed.Address, mixed.Connections, mixed.Duration = address, connections, duration
	_, err := sendLoad(mixed)
	return err
}

var (
	routines = regexp.MustCompile(`(?m)^go_goroutines (\S+)`)
	heap     = regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)`)
	resident = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)`)
)

func vitalsOf(metrics string) (v vitals, err error) {
	if _, err := fetch("http://" + metrics + "/debug/pprof/heap?gc=1"); err != nil {
		return v, err
	}
	text, err := fetch("http://" + metrics + "/metrics")
	if err != nil {
		return v, err
	}
	for figure, into := range map[*regexp.Regexp]*float64{routines: &v.routines, heap: &v.heap, resident: &v.resident} {
		found := figure.FindSubmatch(text)
		if found == nil {
			return v, fmt.Errorf("the metrics have no %s", figure)
		}
		if *into, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return v, err
		}
	}
	return v, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// soakTime is how long, as the operator wants it.
func soakTime() (time.Duration, error) {
	if text := os.Getenv("SOAK"); text != "" {
		return time.ParseDuration(text)
	}
	return 10 * time.Minute, nil
}
