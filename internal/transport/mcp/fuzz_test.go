package mcp

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzArguments checks that arguments of a tool that are accepted have the same meaning when
// they are written again, and that others are an error of the caller.
func FuzzArguments(f *testing.F) {
	operations, err := graph.LoadOperations(queries)
	check.OK(f, err)
	tools, err := buildTools(rows, operations)
	check.OK(f, err)
	for _, all := range examples {
		for _, arguments := range all {
			f.Add(arguments)
		}
	}
	f.Add(`{"limit":"5","category":["code"],"as_of":"8"}`)
	f.Add(`{"slug":"a\u0000"}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return // the message that contains it is rejected
		}
		for _, tool := range tools {
			variables, asOf, err := tool.read(json.RawMessage(arguments))
			if err != nil {
				if p := problem.Of(err); p.Code != problem.BadInput || p.Message == "" {
					t.Errorf("%s %s: got %v, want an error of the caller", tool.name, arguments, err)
				}
				continue
			}
			if asOf != (graph.AsOf{}) {
				variables[graph.AsOfName] = asOf.String()
			}
			written, err := json.Marshal(variables)
			check.OK(t, err)
			again, asOfAgain, err := tool.read(written)
			delete(variables, graph.AsOfName)
			if err != nil || asOfAgain != asOf || !reflect.DeepEqual(again, variables) {
				t.Errorf("%s %s: got %v, %v and %v from %s, want %v", tool.name, arguments, again, asOfAgain, err, written, variables)
			}
		}
	})
}

// FuzzOrigin checks that only pages of the service may call the server, and on a server for
// one machine also other pages of that machine.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{"https://palmares.example", "https://palmares.example.evil.example", "null", "http://localhost:1", "http://localhost.evil.example", "http://127.0.0.1@evil.example", "HTTPS://PALMARES.EXAMPLE", "http://[::1]"} {
		f.Add(origin)
	}
	public, local := newOrigins("https://palmares.example", "https://service.example"), newOrigins("http://127.0.0.1:8080")
	f.Fuzz(func(t *testing.T, origin string) {
		known := strings.EqualFold(origin, "https://palmares.example") || strings.EqualFold(origin, "https://service.example")
		check.Equal(t, public.allow([]string{origin}), known, "%q", origin)
		if !local.allow([]string{origin}) {
			return
		}
		u, err := url.Parse(origin)
		if err != nil || u.Hostname() != "localhost" && u.Hostname() != "::1" && !strings.HasPrefix(u.Hostname(), "127.") && !strings.Contains(u.Hostname(), ":") {
			t.Errorf("%q: got it allowed, want only this machine", origin)
		}
	})
}
