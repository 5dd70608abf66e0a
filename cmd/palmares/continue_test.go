package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// expectContinue announces a body over a raw connection and reads the
// response's first lines, without sending any of the body.
func expectContinue(t *testing.T, address, method, path string, header ...string) (first string, response *http.Response, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: " + address, "Expect: 100-continue"}, header...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	peeked, err := reader.Peek(len("HTTP/1.1 100"))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if first = string(peeked); strings.HasSuffix(first, " 100") {
		return first, nil, ""
	}
	response, err = http.ReadResponse(reader, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return first, response, string(data)
}

// A body that is too large is rejected before the client sends it.
func TestLargeBodiesAreRejectedBeforeContinue(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		cmd := palmares(t, cfg, "serve", "--listen", "127.0.0.1:0", "--demo")
		cmd.Env = append(cmd.Env, "STRIPE_SECRET_KEY=sk_test_x", "STRIPE_WEBHOOK_SECRET=whsec_x", "STRIPE_API_BASE=http://127.0.0.1:1")
		s := serving(t, cmd)
		const form, json, large = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json", "Content-Length: 99000000"
		for _, test := range []struct {
			method, path string
			header       []string
			status       int
			want         string
		}{
			{"POST", "/graphql", []string{json, large}, 413, `"code":"REQUEST_TOO_LARGE"`},
			{"POST", "/login", []string{form, large}, 413, "At most 16384 are allowed"},
			{"POST", "/login/code", []string{form, "Content-Length: 16385"}, 413, "has 16385 bytes"},
			{"POST", "/account/webhooks", []string{form, large}, 413, "</html>"},
			{"POST", "/billing/stripe", []string{json, large}, 413, `{"error":"The request body has 99000000 bytes. At most 1048576 are allowed."}`},
			{"GET", "/api/v1/tools", []string{large}, 413, `{"error":"This path takes no request body.`},
			{"GET", "/api/v1/tools", []string{"Content-Length: 1"}, 413, `{"error":"`},
			{"GET", "/api/v1/tools", []string{"Transfer-Encoding: chunked"}, 413, `{"error":"`},
			{"GET", "/api/v1/openapi.json", []string{large}, 413, `{"error":"`},
			{"GET", "/feeds/changes.atom", []string{large}, 413, `{"error":"`},
			{"GET", "/readyz", []string{large}, 413, `{"error":"`},
			{"GET", "/tools", []string{large, "Accept: text/html"}, 413, "</html>"},
			{"POST", "/api/v1/tools", []string{json, large}, 405, `{"error":"`},
			{"POST", "/tools", []string{form, large}, 405, "</html>"},
			{"POST", "/nowhere", []string{form, large}, 404, ""},
		} {
			name := fmt.Sprint(test.method, " ", test.path, " ", test.header)
			first, response, body := expectContinue(t, s.address, test.method, test.path, test.header...)
			switch {
			case response == nil:
				t.Errorf("%s: got %s, want %d", name, first, test.status)
			case response.StatusCode != test.status || !strings.Contains(body, test.want):
				t.Errorf("%s: got %d %s, want %d with %s", name, response.StatusCode, body, test.status, test.want)
			}
		}
		// Bodies of an allowed size get 100 Continue.
		for path, media := range map[string]string{"/graphql": json, "/login": form, "/billing/stripe": json} {
			if first, _, _ := expectContinue(t, s.address, "POST", path, media, "Content-Length: 30"); first != "HTTP/1.1 100" {
				t.Errorf("POST %s: got %s, want 100 Continue", path, first)
			}
		}
	})
}
