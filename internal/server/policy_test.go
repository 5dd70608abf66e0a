package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
)

// ownPaths are those whose handlers do more than their rows say.
var ownPaths = map[string]string{
	"/mcp":     "it sends CORS headers of its own, and counts calls",
	"/graphql": "GET without an operation is an error",
}

// Every path does what its row says: without a key, with a wrong one, with a valid one, and
// without quota.
func TestPathsFollowTheirPolicy(t *testing.T) {
	s := servertest.New(t, func(c *server.Config) {
		c.Proxies, c.FilesMB, c.Database = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, 100, testkit.SQLite(t)
	})
	check.OK(t, s.Refresh(t.Context()))
	developer := "Bearer " + s.Key(auth.Developer)
	const spent = "203.0.113.200"
	for range 100 {
		s.Get("/api/v1/stats", "X-Forwarded-For", spent)
	}
	remaining := func(header http.Header) string { return header.Get("X-RateLimit-Remaining") }
	for i, row := range server.Rows() {
		path := row.Path
		switch row.Pattern {
		case "/graphql":
			path += "?query={stats{toolsTotal}}"
		case "/files/releases/{number}/{name}":
			path = "/files/releases/1/tools.parquet"
		case "/":
			path = "/nowhere"
		}
		if row.Localized && !strings.HasPrefix(row.Path, "/q/") {
			if got := s.Get(path); got.Code != http.StatusMovedPermanently && path != "/" || !strings.HasPrefix(got.Header().Get("Location"), "/en") {
				t.Errorf("%s: got %d to %q, want a redirect to a language", row.Pattern, got.Code, got.Header().Get("Location"))
			}
			path = "/en" + strings.NewReplacer("/comparatifs", "/comparisons", "/cimetiere", "/graveyard").Replace(path)
		}
		from := fmt.Sprintf("203.0.113.%d", i%199)
		check := func(what string, got, want bool, response any) {
			t.Helper()
			check.Equal(t, got, want, "%s: %s", row.Pattern, what)
		}

		open := s.Get(path, "X-Forwarded-For", from)
		check("401 without a key", open.Code == 401, row.Key, open)
		check("CORS", open.Header().Get("Access-Control-Allow-Origin") == "*", row.CORS, open.Header())

		wrong := s.Get(path, "X-Forwarded-For", from, "Authorization", "Bearer nonsense")
		check("401 with a wrong key", wrong.Code == 401, row.Identified, wrong)

		first := s.Get(path, "Authorization", developer)
		check("401 with a key", first.Code == 401, false, first)
		check("a limit with a key", remaining(first.Header()) != "", row.Counted, first.Header())
		check("private", first.Header().Get("CDN-Cache-Control") == "private, no-store", row.Identified, first.Header())
		second := s.Get(path, "Authorization", developer)
		check("counted again", remaining(second.Header()) != remaining(first.Header()), row.Counted && (!row.OnceADay || row.Pattern == "/files/releases/"), second.Header())
		basic := s.Do(http.MethodGet, path, "", "Authorization", "Basic "+basicOf(developer))
		check("401 with HTTP Basic", basic.Code == 401, row.Identified && !row.Basic, basic)

		uncached := path
		if row.FreeIfCached {
			uncached += "?format=ndjson"
		}
		over := s.Get(uncached, "X-Forwarded-For", spent)
		check("429 over quota", over.Code == 429, row.Counted, over)
		check("a free account over quota", over.Code == 429 && strings.Contains(over.Body.String(), servertest.URL+"/account"), row.Counted, over)
		check("CORS over quota", over.Header().Get("Access-Control-Allow-Origin") == "*", row.CORS, over.Header())

		if ownPaths[row.Pattern] != "" {
			continue
		}
		preflight := s.Do(http.MethodOptions, path, "", "Origin", "https://other.example", "Access-Control-Request-Method", "GET")
		check("a preflight", preflight.Code == 204, row.CORS, preflight)
		large := s.Do(http.MethodGet, path, "{}", "X-Forwarded-For", from)
		check("413 for a body", large.Code == 413, row.NoBody, large)
		if row.Form {
			large := s.Do(http.MethodPost, path, strings.Repeat("x", 1<<20), "Content-Type", "application/x-www-form-urlencoded", "Origin", servertest.URL)
			check("413 for a large form", large.Code == 413, true, large)
		}
		if row.ReadOnly {
			post := s.Do(http.MethodPost, path, "", "X-Forwarded-For", from)
			check("404 for POST", post.Code == 404, true, post)
		}
	}
}

// basicOf returns the credentials of HTTP Basic with the key of a bearer token.
func basicOf(bearer string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(bearer, "Bearer ") + ":"))
}

// What nobody pays for takes at most 2 ms of CPU time, with and without the worst that a
// client may add to it.
func TestNobodyPaysForLittle(t *testing.T) {
	const rounds, requests, most = 3, 10, 2 * time.Millisecond
	s := servertest.New(t)
	check.OK(t, s.Refresh(t.Context()))
	long, developer := strings.Repeat("x", 8_000), []string{"Authorization", "Bearer " + s.Key(auth.Developer)}
	measured := 0
	for _, row := range server.Rows() {
		path := row.Path
		if row.Localized {
			path = "/en" + path
		}
		if !row.Free {
			continue
		}
		measured++
		var key []string // without one, these would be refused before any work
		if row.Identified {
			key = developer
		}
		for _, target := range []string{path, path + "?" + long + "=" + long} {
			s.Get(target)      // what is cached is rendered once for everyone
			least := time.Hour // other processes slow down a round, not all of them
			for range rounds {
				before := wait.CPU()
				for range requests {
					s.Get(target, append([]string{"Accept-Language", long, "If-None-Match", `"` + long + `"`}, key...)...)
				}
				least = min(least, (wait.CPU()-before)/requests)
			}
			check.True(t, least <= most, "%s: got %s of CPU time, want at most %s", row.Pattern, least, most)
		}
	}
	check.True(t, measured >= 20, "got %d patterns, want at least 20", measured)
}

// Requests for data count towards the availability, and those for pages and probes do not.
func TestAvailabilityCountsData(t *testing.T) {
	s := servertest.New(t)
	s.Get("/api/v1/tools")
	s.Get("/api/v1/tools/nobody")
	s.Do(http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`)
	for _, path := range []string{"/en/tools", "/healthz", "/api/v1/openapi.json", "/en/nowhere"} {
		s.Get(path)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Recorder().Run(ended) // writes what was counted
	requests, failed := 0, 0
	for _, minute := range s.Store.Read.Minute.Query().AllX(t.Context()) {
		requests, failed = requests+minute.Requests, failed+minute.Errors
	}
	check.Equal(t, requests, 3)
	check.Equal(t, failed, 0)
}

// An operation costs an agent on this machine what it costs over HTTP: both depend on the
// size of the same catalog.
func TestAgentsPayTheSamePrices(t *testing.T) {
	servertest.Each(t, func(t *testing.T, s *servertest.Server) {
		const query = `{"query":"{tools(filter: {search: \"ecrit\"}) {items {name}}}"}`
		cost := check.Try(strconv.Atoi(s.Do("POST", "/graphql", query).Header().Get("X-GraphQL-Cost"))).OK(t)
		for limit, accepted := range map[int]bool{cost: true, cost - 1: false} {
			limits := graph.DefaultLimits
			limits.Cost = limit
			messages := strings.Join([]string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"graphql_query","arguments":` + query + `}}`,
			}, "\n") + "\n"
			var replies bytes.Buffer
			check.OK(t, server.ServeAgent(t.Context(), server.Config{
				PublicURL: servertest.URL, ServiceName: "palmares", CacheMB: 8, Limits: limits, Log: slog.New(slog.DiscardHandler),
			}, s.Store, io.NopCloser(strings.NewReader(messages)), &replies))
			lines := strings.Split(strings.TrimSpace(replies.String()), "\n")
			var reply struct {
				Result struct{ IsError bool }
			}
			check.OK(t, json.Unmarshal([]byte(lines[len(lines)-1]), &reply))
			check.True(t, reply.Result.IsError != accepted,
				"a limit of %d: got %s, want it accepted: %t", limit, lines[len(lines)-1], accepted)
		}
	})
}
