package main

import (
	"bytes"
	"cmp"
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

	_ "github.com/lib/pq" // for the baseline

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// contest compares a palmares server with another server.
type contest struct {
	name         string
	ours, theirs requests
	goal         float64 // ratio
}

// awaitFiles waits until a server has written the files of its release. It does so in the
// background, which would count as work for requests.
func awaitFiles(t testing.TB, server *blackbox.Server, key string) {
	wait.Until(t, "files of the release", func() bool {
		url := "http://" + server.Address + "/files/releases/1/releases.parquet"
		response, _, err := load.Do(t.Context(), load.Client, url, "", "Authorization", "Bearer "+key)
		return err == nil && response.StatusCode == http.StatusOK
	})
}

// overHTTP compares a server with a bare one that writes the same bytes. They are
// measured alternately, so that a noisy machine affects both alike.
func overHTTP(t testing.TB) {
	table := load.NewTable("over HTTP, 16 connections", "database", "palmares, req/s", "baseline", "ratio", "goal", "p50", "p99", "CPU time of a request", "baseline", "ratio")
	var memory []string
	for _, kind := range kinds {
		progress("%s, HTTP against a bare server", kind)
		cfg, server, key := serveCatalog(t, kind, 5_000)
		defer server.Kill()
		idle, _ := memoryOf(server)
		awaitFiles(t, server, key)
		other, header := startBare(t, server, key, cfg)
		auth := bearer(key)
		hit := getText("/api/v1/tools", auth)
		query := `{"query":"{tools(limit: 50) {items {` + toolFields + `} meta {total page limit pages}}}"}`
		for _, c := range []contest{
			{"hit", requests{Texts: []string{hit}}, requests{Texts: []string{getText("/plain", "")}}, 0.9},
			{"hit, against a baseline without headers", requests{Texts: []string{hit}}, requests{Texts: []string{getText("/body", "")}}, 0},
			{"hit, gzip", requests{Texts: []string{getText("/api/v1/tools", auth+"Accept-Encoding: gzip\r\n")}}, requests{Texts: []string{getText("/gzip", "")}}, 0.85},
			{"304", requests{Texts: []string{getText("/api/v1/tools", auth+"If-None-Match: "+header.Get("Etag")+"\r\n")}, Status: 304},
				requests{Texts: []string{getText("/304", "")}, Status: 304}, 0.8},
			{"hit, GraphQL POST", requests{Texts: []string{postText("/graphql", query, auth)}}, requests{Texts: []string{postText("/post", query, "")}}, 0.6},
			{"hit, 1,000,000 addresses, against hit with a key", requests{Texts: []string{getText("/api/v1/tools", "")}, Addresses: true},
				requests{Texts: []string{hit}, server: server}, 0.8},
		} {
			c.run(t, table, kind, server, other)
		}
		after, _ := memoryOf(server)
		memory = append(memory, fmt.Sprintf("%s: %s idle, %s after this load", kind, inMB(idle), inMB(after)))
	}
	table.Print(os.Stdout)
	fmt.Println(strings.Join(memory, "\n") + "\n")
}

// overMCP compares cached calls of an MCP tool with cached REST responses of the
// same server, about the same ten tools.
func overMCP(t testing.TB) {
	table := load.NewTable("over MCP, 16 connections", "database", "MCP, req/s", "REST, req/s", "ratio", "goal", "p50", "p99", "CPU time of a request", "REST", "ratio")
	call := `{"jsonrpc":"2.0","id":1` + number + `,"method":"tools/call","params":{"name":"search_tools","arguments":{}}}`
	for _, kind := range kinds {
		progress("%s, MCP against REST", kind)
		_, server, key := serveCatalog(t, kind, 5_000)
		awaitFiles(t, server, key)
		headers := bearer(key) + "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\n"
		contest{"hit, tools/call", requests{Texts: []string{postText("/mcp", call, headers)}},
			requests{Texts: []string{getText("/api/v1/tools?limit=10", bearer(key))}}, 0.4}.run(t, table, kind, server, server)
		server.Kill()
	}
	table.Print(os.Stdout)
}

// saved compares cached responses of saved queries with that of a REST path.
func saved(t testing.TB) {
	table := load.NewTable("saved queries, 16 connections", "database", "req/s", "REST, req/s", "ratio", "goal", "p50", "p99", "CPU time of a request", "REST", "ratio")
	for _, kind := range kinds {
		cfg, server, key := serveCatalog(t, kind, 5_000)
		defer server.Kill()
		awaitFiles(t, server, key)
		file := blackbox.WriteFile(t, "query.graphql", []byte("{tools(limit: 50) {items {"+toolFields+"}}}"))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "save", load.Owner, "tools", file, "--handle", "bench"))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "save", load.Owner, "private", file, "--private"))
		printed := blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "token", load.Owner, "private")).Out
		_, token, _ := strings.Cut(strings.TrimSpace(printed), "?")
		hit := requests{Texts: []string{getText("/api/v1/tools", bearer(key))}}
		for _, c := range []contest{
			{"hit", requests{Texts: []string{getText("/q/bench/tools", bearer(key))}}, hit, 0.9},
			{"hit, Accept of a browser", requests{Texts: []string{getText("/q/bench/tools", bearer(key)+"Accept: application/json, text/plain, */*\r\n")}}, hit, 0.9},
			{"hit, private, with a key", requests{Texts: []string{getText("/q/bench/private", bearer(key))}}, hit, 0.9},
			{"hit, private, with a token", requests{Texts: []string{getText("/q/bench/private?"+token, "")}}, hit, 0.9},
		} {
			c.run(t, table, kind, server, server)
		}
	}
	table.Print(os.Stdout)
}

// run measures both sides alternately and adds a row. CPU time varies far less than rates.
func (c contest) run(t testing.TB, table *load.Table, kind string, ours, theirs *blackbox.Server) {
	progress("  %s", c.name)
	c.ours.server, c.theirs.server = ours, cmp.Or(c.theirs.server, theirs)
	var totals [2]results
	var cpu [2]time.Duration
	for round := range 5 {
		for side, r := range []requests{c.ours, c.theirs} {
			r.Address, r.Duration = r.server.Address, 1500*time.Millisecond
			before := cpuOf(t, r.server)
			if got := r.sendAll(t); round > 0 { // the first is a warm-up
				totals[side].add(got)
				cpu[side] += cpuOf(t, r.server) - before
			}
		}
	}
	for side := range cpu {
		cpu[side] /= time.Duration(totals[side].Requests)
	}
	c.addRow(table, kind, totals, cpu[0].Round(100*time.Nanosecond), cpu[1].Round(100*time.Nanosecond), fmt.Sprintf("%.2f", float64(cpu[0])/float64(cpu[1])))
}

// addRow adds a row with the results of both sides.
func (c contest) addRow(table *load.Table, kind string, totals [2]results, more ...any) {
	a, b := totals[0].perSecond(), totals[1].perSecond()
	table.Add(append([]any{c.name, kind, fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.2f", a/b), c.goal,
		totals[0].P50.Round(10 * time.Microsecond), totals[0].P99.Round(10 * time.Microsecond)}, more...)...)
}

// fetchSlugs returns the slugs of a list, up to 20 pages.
func fetchSlugs(t testing.TB, address, path string) (slugs []string) {
	for page := range 20 {
		data := fetch(t, fmt.Sprintf("http://%s%spage=%d", address, path, page+1))
		var list struct{ Data []struct{ Slug string } }
		check.OK(t, json.Unmarshal(data, &list))
		for _, item := range list.Data {
			slugs = append(slugs, item.Slug)
		}
	}
	return slugs
}

// bare is a minimal net/http server for a single response, without anything else
// that palmares does. It is a separate process.
type bare struct {
	Body, Gzipped []byte
	Header        http.Header // of the palmares response
	DataDir       string
	DatabaseURL   string
}

// startBare starts a bare server with the list of tools of a palmares server. It
// returns it and the headers of the list.
func startBare(t testing.TB, ours *blackbox.Server, key string, cfg store.Config) (started *blackbox.Server, header http.Header) {
	response, body, err := load.Do(t.Context(), load.Client, "http://"+ours.Address+"/api/v1/tools", "", "Authorization", "Bearer "+key)
	check.OK(t, err)
	b := bare{Body: body, Header: response.Header, DataDir: cfg.DataDir, DatabaseURL: cfg.DatabaseURL}
	for _, name := range []string{"Date", "Content-Length", "Connection"} { // net/http adds its own
		b.Header.Del(name)
	}
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	_, _ = w.Write(b.Body)
	_ = w.Close()
	b.Gzipped = gzipped.Bytes()
	input, err := json.Marshal(b)
	check.OK(t, err)
	cmd := exec.Command(os.Args[0], "serve-bare")
	cmd.Stdin = bytes.NewReader(input)
	return (*blackbox.Server)(testkit.Start(t, cmd, regexp.MustCompile(`(\S+)`))), b.Header
}

func serveBare(t testing.TB) {
	var b bare
	check.OK(t, json.NewDecoder(os.Stdin).Decode(&b))
	write := func(w http.ResponseWriter, header http.Header, status int, body []byte) {
		maps.Copy(w.Header(), header)
		if status == http.StatusOK {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}
	mux := http.NewServeMux()
	handle := func(pattern string, header http.Header, status int, body []byte) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			write(w, header, status, body)
		})
	}
	plain := http.Header{"Content-Type": {"application/json"}}
	gzipped, notModified := b.Header.Clone(), b.Header.Clone()
	gzipped.Set("Content-Encoding", "gzip")
	notModified.Del("Content-Type")
	handle("GET /body", plain, 200, b.Body)
	handle("GET /plain", b.Header, 200, b.Body)
	handle("GET /gzip", gzipped, 200, b.Gzipped)
	handle("GET /304", notModified, 304, nil)
	handle("POST /post", b.Header, 200, b.Body)
	baseline, err := openBaseline(store.Config{DataDir: b.DataDir, DatabaseURL: b.DatabaseURL})
	check.OK(t, err)
	baseline.handle(mux, func(w http.ResponseWriter, body []byte) { write(w, plain, 200, body) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	fmt.Println(listener.Addr())
	check.OK(t, http.Serve(listener, mux))
}
