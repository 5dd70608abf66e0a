package mcp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

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
