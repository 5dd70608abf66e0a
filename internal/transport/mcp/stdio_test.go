package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// conversation is a client of a server over standard streams.
type conversation struct {
	t       *testing.T
	in      *io.PipeWriter
	replies chan string // read at once, so that the server never waits
	ended   chan error
}

func converse(t *testing.T, c *catalog) *conversation {
	t.Helper()
	input, in := io.Pipe()
	out, output := io.Pipe()
	v := &conversation{t: t, in: in, replies: make(chan string, 1_000), ended: make(chan error, 1)}
	go func() {
		v.ended <- c.Run(t.Context(), input, output)
		_ = output.Close()
		_ = input.Close()
	}()
	go func() {
		defer close(v.replies)
		lines := bufio.NewScanner(out)
		for lines.Buffer(nil, 10<<20); lines.Scan(); {
			v.replies <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = in.Close() })
	return v
}

func (v *conversation) send(text string) {
	v.t.Helper()
	check.Try(io.WriteString(v.in, text)).OK(v.t, "%.100q", text)
}

func (v *conversation) receive() string {
	v.t.Helper()
	reply, ok := <-v.replies
	check.MustTrue(v.t, ok, "got the end of the output, want a reply")
	return reply
}

// end closes the input and returns the rest of the output.
func (v *conversation) end() (rest []string) {
	v.t.Helper()
	_ = v.in.Close()
	for reply := range v.replies {
		rest = append(rest, reply)
	}
	check.Equal(v.t, <-v.ended, nil)
	return rest
}

const initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"

// rpc returns a request with an ID and, optionally, params.
func rpc(id, method string, params ...string) string {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q`, id, method)
	if params != nil {
		text += `,"params":` + params[0]
	}
	return text + "}"
}

const notAMessage = "null -32600 This is not a JSON-RPC 2.0 message."

// inputs are lines with the beginnings of the replies to them. Members of a reply are
// written as "id code message", and "id ok" is a result.
var inputs = []struct{ name, line, want string }{
	{"nothing", "", ""},
	{"a carriage return", rpc("1", "ping") + "\r", "1 ok"},
	{"spaces around a message", " \t" + rpc("1", "ping") + " ", "1 ok"},
	{"not JSON", "hello", "null -32700 The line is not valid JSON."},
	{"half a message", `{"jsonrpc":"2.0","id":1,"meth`, "null -32700 The line is not valid JSON."},
	{"two messages", rpc("1", "ping") + rpc("2", "ping"), "null -32700 The line is not valid JSON."},
	{"invalid UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff\xfe" + `"}`, "null -32700 The line is not valid JSON."},
	{"a byte order mark", "\ufeff" + rpc("1", "ping"), "null -32700 The line is not valid JSON."},
	{"a name twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "null -32700 The line is not valid JSON."},
	{"10 MB", rpc("1", "tools/call", `{"name":"`+strings.Repeat("x", 10_000_000)+`"}`), "null -32600 The message is larger than 100000 bytes."},
	{"one byte too much", rpc("1", "ping", `{"x":"`+strings.Repeat("x", 100_001-len(rpc("1", "ping", `{"x":""}`)))+`"}`), "null -32600 The message is larger than 100000 bytes."},
	{"the maximum size", rpc("1", "ping", `{"x":"`+strings.Repeat("x", 100_000-len(rpc("1", "ping", `{"x":""}`)))+`"}`), "1 ok"},
	{"20,000 levels", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "null -32700 The line is not valid JSON."},

	{"null", "null", notAMessage},
	{"an older version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, notAMessage},
	{"an object as ID", rpc(`{"a":1}`, "ping"), notAMessage},
	{"another member", `{"jsonrpc":"2.0","id":1,"method":"ping","x":1}`, "1 ok"},
	{"ID 0", rpc("0", "ping"), "0 ok"},
	{"a long ID", rpc(`"`+strings.Repeat("x", 50_000)+`"`, "ping"), `"xxxx`},

	{"an unknown method", rpc("1", "tools/run", "{}"), "1 -32601 "},
	{"params as a number", rpc("1", "tools/call", "5"), "1 -32602 "},
	{"no params", rpc("1", "tools/call"), "1 -32600 "},
	{"an unknown tool", rpc("1", "tools/call", `{"name":"x"}`), "1 -32602 "},
	{"arguments as a string", rpc("1", "tools/call", `{"name":"get_tool","arguments":"x"}`), "1 ok"}, // an error for the model
	{"an unknown revision", rpc("1", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`), "1 -32022 "},
	{"a method that a revision removed", rpc("1", "ping", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`), "1 -32601 "},
	{"an invalid cursor", rpc("1", "tools/list", `{"cursor":"x"}`), "1 -32602 "},
	{"an unknown prompt", rpc("1", "prompts/get", `{"name":"x"}`), "1 -32602 "},
	{"a prompt without its argument", rpc("1", "prompts/get", `{"name":"choose_tool"}`), "1 -32602 task is required."},
	{"a resource of an unknown tool", rpc("1", "resources/read", `{"uri":"palmares://tools/plmue"}`), `1 -32602 slug: no tool has the slug "plmue".`},
	{"an invalid completion", rpc("1", "completion/complete", `{}`), "1 -32602 "},
	{"a subscription to a resource", rpc("1", "resources/subscribe", `{"uri":"palmares://schema"}`), "1 -32601 "},
	{"a subscription", rpc("1", "subscriptions/listen", `{"notifications":{}}`), "1 -32601 "},
	{"a second initialization", strings.TrimSpace(initialize), `"i" -32600 The session is already initialized.`},

	{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
	{"a notification of a method", `{"jsonrpc":"2.0","method":"tools/list"}`, ""},
	{"a notification with an ID", rpc("1", "notifications/initialized"), "1 -32600 "},
	{"the cancellation of an unknown request", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, ""},
	{"a cancellation of an object", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, ""},
	{"a result", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
	{"no method", `{"jsonrpc":"2.0","id":1}`, ""},

	{"a batch", "[" + rpc("1", "ping") + "]", notAMessage},
}

// summarize writes a line of the server as inputs do.
func summarize(t testing.TB, text string) string {
	t.Helper()
	var reply struct {
		JSONRPC string
		ID      json.RawMessage
		Result  json.RawMessage
		Error   *struct {
			Code    int
			Message string
		}
	}
	check.OK(t, json.Unmarshal([]byte(text), &reply))
	check.Must(t, reply.JSONRPC, "2.0", "%.300s", text)
	check.MustTrue(t, (reply.Result == nil) != (reply.Error == nil), "got %.300s, want a reply", text)
	if reply.Error == nil {
		return string(reply.ID) + " ok"
	}
	return fmt.Sprintf("%s %d %s", reply.ID, reply.Error.Code, reply.Error.Message)
}

// Every invalid line gets an error with its ID, if it has one, and the server
// continues with the next line.
func TestInvalidLines(t *testing.T) {
	c := onSQLite(t)
	v := converse(t, c)
	v.send(initialize)
	check.Must(t, summarize(t, v.receive()), `"i" ok`, "initialize: want a result")
	for i, e := range inputs {
		v.send(e.line + "\n")
		if e.want != "" {
			got := summarize(t, v.receive())
			check.True(t, strings.HasPrefix(got, e.want), "%s: got %.200s, want %s", e.name, got, e.want)
		}
		id := fmt.Sprint(1000 + i)
		v.send(rpc(id, "ping") + "\n")
		check.Must(t, summarize(t, v.receive()), id+" ok", "after %s: want a reply to ping", e.name)
	}
	rest := v.end()
	check.True(t, rest == nil, "got %q at the end, want nothing more", rest)
	t.Logf("%d lines", len(inputs))
}

// Everything before the end of the input gets its reply, even if the last line has no
// end.
func TestEndOfInput(t *testing.T) {
	c := onSQLite(t)
	call := rpc("1", "tools/call", `{"name":"get_tool","arguments":{"slug":"plume"}}`)
	for _, e := range []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", nil},
		{"an empty line", "\n", nil},
		{"half a line", `{"jsonrpc":"2.0","id":1,`, []string{"null -32700"}},
		{"half a character", "\xe2\x82", []string{"null -32700"}},
		{"10 MB without an end", strings.Repeat("x", 10_000_000), []string{"null -32600"}},
		{"a message without an end of line", rpc("1", "ping"), []string{"1 ok"}},
		{"a message and half of one", rpc("1", "ping") + "\n" + rpc("2", "ping")[:20], []string{"1 ok", "null -32700"}},
		{"a call", initialize + call, []string{`"i" ok`, "1 ok"}},
	} {
		var out bytes.Buffer
		check.OK(t, c.Run(t.Context(), io.NopCloser(strings.NewReader(e.input)), &out))
		var got []string
		for line := range strings.Lines(out.String()) {
			got = append(got, summarize(t, line))
		}
		slices.Sort(got) // replies may overtake each other
		check.True(t, slices.EqualFunc(got, e.want, strings.HasPrefix), "%s: got %q, want %q", e.name, got, e.want)
	}
}

// A request is read only if fewer than 20 have no reply.
func TestPendingRequestsAreLimited(t *testing.T) {
	var input strings.Builder
	for i := range 30 {
		input.WriteString(rpc(fmt.Sprint(i), "ping") + "\n")
	}
	c := newStdio(io.NopCloser(strings.NewReader(input.String())), io.Discard, 100_000)
	pending := make(chan int)
	go func() {
		for lines := bufio.NewReader(c); ; {
			if _, err := lines.ReadString('\n'); err != nil {
				close(pending)
				return
			}
			c.mu.Lock()
			n := len(c.pending)
			c.mu.Unlock()
			pending <- n
		}
	}()
	for i := range 30 {
		if i >= 20 {
			check.Try(c.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i-20))).OK(t)
		}
		got := <-pending
		check.True(t, got <= 20, "after request %d: got %d pending, want at most 20", i, got)
	}
	check.OK(t, c.Close())
	<-pending
}

// A line that is too long is skipped without being held in memory.
func TestLongLinesUseNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out bytes.Buffer
	c := newStdio(io.NopCloser(io.MultiReader(io.LimitReader(endless{}, 200<<20), strings.NewReader("\n"+rpc("1", "ping")+"\n"))), &out, 100_000)
	next, err := bufio.NewReader(c).ReadString('\n')
	runtime.ReadMemStats(&after)
	check.OK(t, err)
	check.Equal(t, next, rpc("1", "ping")+"\n")
	check.Equal(t, summarize(t, out.String()), "null -32600 The message is larger than 100000 bytes.")
	got := after.TotalAlloc - before.TotalAlloc
	check.True(t, got <= 1<<20, "got %d bytes allocated, want at most %d", got, 1<<20)
}

// endless returns the letter x forever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A canceled request stops.
func TestCanceledRequests(t *testing.T) {
	c := onSQLite(t)
	started := make(chan struct{})
	c.addTool("wait", "Wait", "Waits.", map[string]any{"type": "object"}, nil, func(ctx context.Context, _ json.RawMessage) (*result, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	v := converse(t, c)
	v.send(initialize)
	v.receive()
	for _, id := range []string{`7`, `"a"`} {
		v.send(rpc(id, "tools/call", `{"name":"wait"}`) + "\n")
		<-started
		for _, cancel := range []string{`"b"`, id, id} { // another request, then this one, twice
			v.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + cancel + `}}` + "\n")
		}
		check.Contains(t, v.receive(), `"id":`+id, "%s: want the end of the canceled request", id)
	}
	rest := v.end()
	check.True(t, rest == nil, "got %q, want nothing more", rest)
}

// The server ends without an error if the client closes the output, whether the
// server replies to a request or to an invalid line.
func TestClosedOutput(t *testing.T) {
	c := onSQLite(t)
	for _, line := range []string{rpc("1", "ping"), "{", "[1]", initialize + rpc("1", "tools/call", `{"name":"catalog_stats"}`)} {
		input, in := io.Pipe()
		out, output := io.Pipe()
		_ = out.Close()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context(), input, output) }()
		_, _ = io.WriteString(in, line+"\n")
		check.Equal(t, <-ended, nil, line)
		_ = in.Close()
	}
}

// A panic in a call does not end the server, and an interrupt does.
func TestStreamsAfterPanic(t *testing.T) {
	c := onSQLite(t)
	c.addTool("panic", "Panic", "Panics.", map[string]any{"type": "object"}, nil, func(context.Context, json.RawMessage) (*result, error) { panic("mistake") })
	v := converse(t, c)
	v.send(initialize)
	v.receive()
	v.send(rpc("1", "tools/call", `{"name":"panic"}`) + "\n")
	check.Equal(t, summarize(t, v.receive()), "1 -32603 Something went wrong on our side.", "want an internal error")
	v.send(rpc("2", "ping") + "\n")
	check.Equal(t, summarize(t, v.receive()), "2 ok", "want a reply to ping")
	v.end()

	ctx, interrupt := context.WithCancel(t.Context())
	input, _ := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, input, io.Discard) }()
	interrupt()
	check.Is(t, <-ended, context.Canceled)
}

// FuzzStreams checks that the output has only JSON-RPC messages, whatever the input, and
// that the server ends cleanly.
func FuzzStreams(f *testing.F) {
	c := onSQLite(f)
	for _, e := range inputs {
		if len(e.line) < 10_000 {
			f.Add([]byte(initialize + e.line))
			f.Add([]byte(e.line + "\n" + initialize + e.line + "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		check.Equal(t, c.Run(t.Context(), io.NopCloser(bytes.NewReader(input)), &out), nil)
		for line := range strings.Lines(out.String()) {
			summarize(t, line)
		}
	})
}

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
			session := check.Try(client.Connect(t.Context(), transport(), nil)).OK(t)
			tools := check.Try(session.ListTools(t.Context(), nil)).OK(t)
			found := check.Try(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_tools", Arguments: map[string]any{"search": "plume", "limit": 1}})).OK(t)
			check.Equal(t, len(tools.Tools), len(examples), name)
			check.Equal(t, found.IsError, false, name)
			check.Contains(t, found.Content[0].(*sdk.TextContent).Text, "plume | Plume", name)
			resources := check.Try(session.ListResources(t.Context(), nil)).OK(t)
			i := slices.IndexFunc(resources.Resources, func(r *sdk.Resource) bool { return r.URI == "palmares://guides/paging" })
			check.True(t, i >= 0, "%s: got %d resources, want the schema and the guide", name, len(resources.Resources))
			check.Equal(t, len(resources.Resources), 2, name)
			for uri, want := range map[string]string{"palmares://tools/plume": `"slug":"plume"`, "palmares://guides/paging": "# Paging", "palmares://schema": "type Query"} {
				read := check.Try(session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})).OK(t)
				check.Contains(t, read.Contents[0].Text, want, "%s: %s", name, uri)
			}
			prompt := check.Try(session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "what_changed", Arguments: map[string]string{"since": "release 7"}})).OK(t)
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
