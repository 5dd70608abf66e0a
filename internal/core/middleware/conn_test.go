package middleware_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/core/middleware"
	"palmares/internal/dev/check"
)

// joined serves a handler with a Listener.
func joined(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(middleware.Log(slog.New(slog.DiscardHandler))(handler))
	server.Listener = middleware.Listener{Listener: server.Listener}
	server.Config.ConnContext = middleware.ConnContext
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// Responses of every size around that of net/http's buffer arrive complete, in
// whatever chunks the handler writes them.
func TestJoinedResponses(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
	server := joined(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		size, _ := strconv.Atoi(query.Get("size"))
		if query.Has("length") {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		}
		w.Header().Set("X-Long", strings.Repeat("x", len(query.Get("header"))*4_000))
		if query.Has("flushed") {
			_ = http.NewResponseController(w).Flush()
		}
		parts, _ := strconv.Atoi(query.Get("parts"))
		for part := range parts {
			_, _ = w.Write(text[size*part/parts : size*(part+1)/parts])
			if query.Has("flushed") {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	sizes := []int{0, 1, 2_048, 16_000, 100_000}
	for around := range 300 {
		sizes = append(sizes, 3_900+around, 8_000+around)
	}
	for _, size := range sizes {
		for _, variant := range []string{"parts=1", "parts=1&length", "parts=2&length", "parts=1&flushed&length", "parts=2&flushed", "parts=1&length&header=x", "parts=1&length&header=xx"} {
			response := check.Try(server.Client().Get(fmt.Sprintf("%s/?size=%d&%s", server.URL, size, variant))).OK(t)
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			check.MustTrue(t, err == nil && bytes.Equal(got, text[:size]), "%s: got %d bytes and %v, want %d", variant, len(got), err, size)
		}
	}
}

// A large response takes one system call.
func TestResponseIsWrittenAtOnce(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("only Linux counts system calls")
	}
	body := make([]byte, 25_000)
	server := joined(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	conn := check.Try(net.Dial("tcp", server.Listener.Addr().String())).OK(t)
	defer conn.Close()
	responses := bufio.NewReader(conn)
	const requests = 200
	before := writes(t)
	for range requests {
		check.Try(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).OK(t)
		response := check.Try(http.ReadResponse(responses, nil)).OK(t)
		n, err := io.Copy(io.Discard, response.Body)
		check.MustTrue(t, err == nil && n == int64(len(body)), "got %d bytes and %v, want %d", n, err, len(body))
	}
	// One for each request, one for its response, and a few from other goroutines.
	got := writes(t) - before
	check.True(t, got <= 2*requests+requests/2, "got %d writes for %d requests and responses, want about %d", got, requests, 2*requests)
}

// writes returns how many write calls this process has made.
func writes(t *testing.T) (n int) {
	t.Helper()
	text := check.Try(os.ReadFile("/proc/self/io")).OK(t)
	_, counted, _ := strings.Cut(string(text), "syscw: ")
	check.Try(fmt.Sscan(counted, &n)).OK(t)
	return n
}
