package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// contest compares requests to palmares with others.
type contest struct {
	name         string
	ours, theirs requests
	goal         float64 // ratio
}

// run measures both sides alternately, so that a noisy machine affects both alike, and adds
// a row. CPU time varies far less than rates. Requests with a length are measured after a
// round that warms up. Those with a count are only sent once to a server, so that none is
// cached: each round starts another one.
func (c contest) run(b *bed) {
	progress("  %s", c.name)
	var totals [2]results
	var cpu [2]time.Duration
	for round := range 5 {
		if c.ours.count > 0 {
			b.restart()
			b.awaitFiles()
			c.ours.server = b.server
			requests{server: b.server, count: 50, texts: []string{getText("/api/v1/stats", b.auth())}}.send(b)
		}
		for side, r := range []requests{c.ours, c.theirs} {
			before := cpuOf(b, r.server)
			if got := r.send(b); round > 0 {
				totals[side].add(got)
				cpu[side] += cpuOf(b, r.server) - before
			}
		}
	}
	var rates [2]float64
	for side, total := range totals {
		cpu[side] /= time.Duration(total.requests)
		rates[side] = float64(total.requests) / total.took.Seconds()
	}
	tenth, tens := 100*time.Nanosecond, 10*time.Microsecond
	b.Add(c.name, b.kind, int(rates[0]), int(rates[1]), ratio(rates[0], rates[1]), c.goal, totals[0].p50.Round(tens), totals[0].p99.Round(tens),
		cpu[0].Round(tenth), cpu[1].Round(tenth), ratio(cpu[0], cpu[1]))
}

// repeated returns requests with one text.
func repeated(server *blackbox.Server, text string) requests {
	return requests{server: server, texts: []string{text}, length: 1500 * time.Millisecond}
}

const list = "/api/v1/tools"

// overHTTP compares the server with a bare one that writes the same bytes.
func overHTTP(b *bed) {
	b.serve(5_000)
	idle, _ := memoryOf(b.server)
	b.awaitFiles()
	bare := b.startBare()
	hit := repeated(b.server, getText(list, b.auth()))
	query := `{"query":"{tools(limit: 50) {items {` + toolFields + `} meta {total page limit pages}}}"}`
	response, _, err := load.Do(b.Context(), load.Client, "http://"+b.server.Address+list, "", "Authorization", "Bearer "+b.key)
	check.OK(b, err)
	unchanged := repeated(b.server, getText(list, b.auth()+"If-None-Match: "+response.Header.Get("ETag")+"\r\n"))
	bareUnchanged := repeated(bare, getText("/304", ""))
	unchanged.status, bareUnchanged.status = http.StatusNotModified, http.StatusNotModified
	anonymous := repeated(b.server, getText(list, ""))
	anonymous.addresses = true
	for _, c := range []contest{
		{"hit", hit, repeated(bare, getText("/plain", "")), 0.9},
		{"hit, against a baseline without headers", hit, repeated(bare, getText("/body", "")), 0},
		{"hit, gzip", repeated(b.server, getText(list, b.auth()+"Accept-Encoding: gzip\r\n")), repeated(bare, getText("/gzip", "")), 0.85},
		{"304", unchanged, bareUnchanged, 0.8},
		{"hit, GraphQL POST", repeated(b.server, postText("/graphql", query, b.auth())), repeated(bare, postText("/plain", query, "")), 0.6},
		{"hit, 1,000,000 addresses, against hit with a key", anonymous, hit, 0.8},
	} {
		c.run(b)
	}
	after, _ := memoryOf(b.server)
	fmt.Printf("%s: resident memory %s idle, %s after this load\n", b.kind, inMB(idle), inMB(after))
}

// overMCP compares cached calls of an MCP tool with cached REST responses about the same
// ten tools.
func overMCP(b *bed) {
	b.serve(5_000)
	b.awaitFiles()
	call := postText("/mcp", `{"jsonrpc":"2.0","id":1`+number+`,"method":"tools/call","params":{"name":"search_tools","arguments":{}}}`,
		b.auth()+"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\n")
	contest{"hit, tools/call", repeated(b.server, call), repeated(b.server, getText(list+"?limit=10", b.auth())), 0.4}.run(b)
}

// saved compares cached responses of saved queries with that of a REST path.
func saved(b *bed) {
	b.serve(5_000)
	b.awaitFiles()
	file := blackbox.WriteFile(b, "query.graphql", []byte("{tools(limit: 50) {items {"+toolFields+"}}}"))
	queries := func(args ...string) string {
		return blackbox.MustRun(b, blackbox.Command(b, b.cfg, append([]string{"queries"}, args...)...)).Out
	}
	queries("save", load.Owner, "tools", file, "--handle", "bench")
	queries("save", load.Owner, "private", file, "--private")
	_, token, _ := strings.Cut(strings.TrimSpace(queries("token", load.Owner, "private")), "?")
	for _, c := range []struct{ name, text string }{
		{"hit", getText("/q/bench/tools", b.auth())},
		{"hit, Accept of a browser", getText("/q/bench/tools", b.auth()+"Accept: application/json, text/plain, */*\r\n")},
		{"hit, private, with a key", getText("/q/bench/private", b.auth())},
		{"hit, private, with a token", getText("/q/bench/private?"+token, "")},
	} {
		contest{c.name, repeated(b.server, c.text), repeated(b.server, getText(list, b.auth())), 0.9}.run(b)
	}
}

// fetchSlugs returns the slugs of a list, up to 20 pages.
func (b *bed) fetchSlugs(path string) (slugs []string) {
	for page := range 20 {
		var list struct{ Data []struct{ Slug string } }
		check.OK(b, json.Unmarshal(b.get(fmt.Sprintf("%spage=%d", path, page+1)), &list))
		for _, item := range list.Data {
			slugs = append(slugs, item.Slug)
		}
	}
	return slugs
}

// startBare starts a minimal net/http server in a process of its own. It responds with the
// list of tools of the server, without anything else that palmares does, and reads the
// database with hand-written SQL.
func (b *bed) startBare() *blackbox.Server {
	cmd := exec.Command(os.Args[0], "serve-bare", b.server.Address, b.key, b.cfg.DataDir, b.cfg.DatabaseURL)
	return (*blackbox.Server)(testkit.Start(b, cmd, regexp.MustCompile(`(\S+)`)))
}

func serveBare(t testing.TB, address, key string, cfg store.Config) {
	response, body, err := load.Do(t.Context(), load.Client, "http://"+address+list, "", "Authorization", "Bearer "+key)
	check.OK(t, err)
	full, plain := response.Header, http.Header{"Content-Type": {"application/json"}}
	for _, name := range []string{"Date", "Content-Length", "Connection"} { // net/http adds its own
		full.Del(name)
	}
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	_, _ = w.Write(body)
	check.OK(t, w.Close())
	encoded, notModified := full.Clone(), full.Clone()
	encoded.Set("Content-Encoding", "gzip")
	notModified.Del("Content-Type")
	write := func(w http.ResponseWriter, header http.Header, status int, body []byte) {
		maps.Copy(w.Header(), header)
		if status == http.StatusOK {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
	mux := http.NewServeMux()
	handle := func(path string, header http.Header, status int, body []byte) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			write(w, header, status, body)
		})
	}
	handle("/body", plain, 200, body)
	handle("/plain", full, 200, body)
	handle("/gzip", encoded, 200, gzipped.Bytes())
	handle("/304", notModified, 304, nil)
	openBaseline(cfg).handle(mux, func(w http.ResponseWriter, body []byte) { write(w, plain, 200, body) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	fmt.Println(listener.Addr())
	check.OK(t, http.Serve(listener, mux))
}
