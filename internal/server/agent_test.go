package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
)

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
