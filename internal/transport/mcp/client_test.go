package mcp

import (
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The official Go client runs a whole conversation with the newest and an older
// protocol version, over HTTP and over standard streams.
func TestGoClient(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		server := httptest.NewServer(c)
		defer server.Close()
		c.origins.local = true
		transports := map[string]func() sdk.Transport{
			"HTTP":           func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: server.URL} },
			"standard input": func() sdk.Transport { return overStreams(t, c.Server) },
		}
		for name, transport := range transports {
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), transport(), nil)
			check.OK(t, err)
			tools, err := session.ListTools(t.Context(), nil)
			check.OK(t, err)
			found, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_tools", Arguments: map[string]any{"search": "plume", "limit": 1}})
			check.OK(t, err)
			if text := found.Content[0].(*sdk.TextContent).Text; len(tools.Tools) != len(examples) || found.IsError || !strings.Contains(text, "plume | Plume") {
				t.Errorf("%s: got %d tools and %s, want Plume", name, len(tools.Tools), text)
			}
			resources, err := session.ListResources(t.Context(), nil)
			check.OK(t, err)
			if i := slices.IndexFunc(resources.Resources, func(r *sdk.Resource) bool { return r.URI == "palmares://guides/paging" }); i < 0 || len(resources.Resources) != 2 {
				t.Errorf("%s: got %d resources, want the schema and the guide", name, len(resources.Resources))
			}
			for uri, want := range map[string]string{"palmares://tools/plume": `"slug":"plume"`, "palmares://guides/paging": "# Paging", "palmares://schema": "type Query"} {
				read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				check.OK(t, err)
				check.Contains(t, read.Contents[0].Text, want, "%s: %s", name, uri)
			}
			prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "what_changed", Arguments: map[string]string{"since": "release 7"}})
			check.OK(t, err)
			check.Contains(t, prompt.Messages[0].Content.(*sdk.TextContent).Text, "since release 7?", "%s: want a prompt", name)
			check.OK(t, session.Close())
		}
	})
}

// overStreams runs a server on pipes until the client closes them.
func overStreams(t *testing.T, s *Server) sdk.Transport {
	input, in := io.Pipe()
	out, output := io.Pipe()
	go func() {
		_ = s.Run(context.WithoutCancel(t.Context()), input, output)
		_ = output.Close()
	}()
	return &sdk.IOTransport{Reader: out, Writer: in}
}
