package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/server"
)

const (
	idleClients = 10_000
	slowReaders = 300
	slowSenders = 300
	// idleMemory is how much memory an idle connection may use. Go's server needs
	// two 4 kB buffers and a stack for each one.
	idleMemory = 40 << 10
	// otherRequests is how many requests other clients send, without and with the
	// crowd.
	otherRequests = 400
)

// Ten thousand idle connections, and hundreds that read or send slowly, do not
// affect other clients and use limited memory.
func TestCrowdOfIdleAndSlowClients(t *testing.T) {
	testkit.FullTier(t, "it opens thousands of connections")
	crowd := raiseFileLimit(t, idleClients+slowReaders+slowSenders+500) - slowReaders - slowSenders - 500
	if crowd < 100 {
		testkit.SkipUnsupported(t, fmt.Sprintf("the system allows only %d connections", crowd))
	}
	crowd = min(crowd, idleClients)
	metricsAddress := testkit.FreeAddress(t)
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo", "--metrics-listen", metricsAddress)
	sendOtherRequests(t, s) // fills the caches
	alone := sendOtherRequests(t, s)
	before := residentMemory(t, s)

	var open conns
	defer open.close()
	open.dial(t, s.Address, crowd, func(c net.Conn) { // one request each, then idle
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
		}
		check.Equal(t, err, nil, "idle client")
	})
	idle := residentMemory(t, s)

	var slow conns
	defer slow.close()
	slow.dial(t, s.Address, slowReaders, func(c net.Conn) { // they never read megabytes of responses
		fmt.Fprint(c, strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: palmares\r\n\r\n", 50))
	})
	slow.dial(t, s.Address, slowSenders, func(c net.Conn) { fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nX-Slow: ") })
	sending := slow.all[slowReaders:]
	stop := make(chan struct{})
	var dripping sync.WaitGroup
	defer dripping.Wait()
	defer close(stop)
	dripping.Go(func() {
		for {
			for _, c := range sending {
				_, _ = c.Write([]byte("x"))
			}
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})

	waitUntilBlocked(t, s, metricsAddress)
	crowdedTime := sendOtherRequests(t, s)
	crowded := residentMemory(t, s)
	closed := 0
	deadline := time.Now().Add(wait.Limit)
	for _, c := range sending { // the server closes each after server.ReadHeaderTimeout
		_ = c.SetReadDeadline(deadline)
		if _, err := io.Copy(io.Discard, c); err == nil || !os.IsTimeout(err) {
			closed++
		}
	}
	t.Logf("%d idle, %d slow readers, %d slow senders: %d other requests took %s of CPU time (%s without the crowd); "+
		"resident memory %d MB before, %d MB with idle clients, %d MB with all; %d slow senders were disconnected after %s",
		crowd, slowReaders, slowSenders, otherRequests, crowdedTime, alone, before>>20, idle>>20, crowded>>20, closed, server.ReadHeaderTimeout)
	// The limit includes the cost of the crowd itself.
	if limit := 20 * max(alone, 250*time.Millisecond); crowdedTime > limit {
		t.Errorf("got %s of CPU time for %d requests with the crowd, want at most %s", crowdedTime, otherRequests, limit)
	}
	if limit := before + int64(crowd)*idleMemory + 64<<20; crowded > limit {
		t.Errorf("got %d MB of resident memory, want at most %d", crowded>>20, limit>>20)
	}
	check.True(t, closed >= len(sending), "got %d slow senders disconnected, want %d", closed, len(sending))
}

// sendOtherRequests sends requests that must succeed, four at a time, and returns
// the CPU time that the server used in the meantime.
func sendOtherRequests(t *testing.T, s *blackbox.Server) time.Duration {
	t.Helper()
	before := cpuTime(t, s)
	var sending sync.WaitGroup
	for i := range 4 {
		sending.Go(func() {
			client := &http.Client{Timeout: wait.Limit, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for range otherRequests / 4 {
				response, err := client.Get("http://" + s.Address + "/tools/plume")
				if err != nil {
					t.Errorf("other client: got %v, want a response", err)
					return
				}
				check.Equal(t, response.StatusCode, http.StatusOK, "other client")
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	sending.Wait()
	return cpuTime(t, s) - before
}

// waitUntilBlocked waits until the server has sent the slow readers as many
// responses as the buffers hold: it completes other requests, but none of theirs.
func waitUntilBlocked(t *testing.T, s *blackbox.Server, metricsAddress string) {
	t.Helper()
	completed := func() (n int) {
		text, _ := scrape(t, metricsAddress)
		for _, line := range regexp.MustCompile(`(?m)^palmares_requests_total\{.*route="/api/v1/openapi.json".*\} (\d+)$`).FindAllStringSubmatch(text, -1) {
			count := check.Try(strconv.Atoi(line[1])).OK(t)
			n += count
		}
		return n
	}
	wait.Until(t, "the slow readers are blocked", func() bool {
		before := completed()
		sendOtherRequests(t, s)
		return before > 0 && completed() == before
	})
}

// cpuTime returns the CPU time that a server has used.
func cpuTime(t *testing.T, s *blackbox.Server) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Cmd.Process.Pid))
	if err != nil {
		testkit.SkipUnsupported(t, "CPU times are not available on this system")
	}
	// The name, in parentheses, may contain spaces. User and system time are the
	// 14th and 15th fields, in hundredths of a second on all Linux systems.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n := check.Try(strconv.Atoi(field)).OK(t)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// conns holds open connections.
type conns struct{ all []net.Conn }

// dial opens connections, 32 at a time, from several loopback addresses because
// one does not have enough ports.
func (c *conns) dial(t *testing.T, address string, number int, then func(net.Conn)) {
	t.Helper()
	opened := make([]net.Conn, number)
	var next atomic.Int64
	var dialing sync.WaitGroup
	for range 32 {
		dialing.Go(func() {
			for i := int(next.Add(1)) - 1; i < number; i = int(next.Add(1)) - 1 {
				from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}
				conn, err := (&net.Dialer{LocalAddr: from, Timeout: wait.Limit, Control: smallBuffer}).Dial("tcp", address)
				if err != nil {
					t.Errorf("connection %d: got %v, want no error", i, err)
					return
				}
				opened[i] = conn
				then(conn)
			}
		})
	}
	dialing.Wait()
	for _, conn := range opened {
		if conn != nil {
			c.all = append(c.all, conn)
		}
	}
	check.MustTrue(t, len(c.all) >= number, "got %d connections, want %d", len(c.all), number)
}

// smallBuffer keeps the kernel from buffering unread responses.
func smallBuffer(_, _ string, conn syscall.RawConn) (err error) {
	failed := conn.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	return errors.Join(failed, err)
}

func (c *conns) close() {
	for _, conn := range c.all {
		_ = conn.Close()
	}
}

// raiseFileLimit raises the limit on open files, for this process and those it
// starts, and returns the new limit.
func raiseFileLimit(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	check.OK(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	before := limit
	if limit.Cur < uint64(wanted) {
		limit.Cur = min(limit.Max, uint64(wanted))
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Logf("the limit on open files stays at %d: %v", before.Cur, err)
			limit = before
		}
		t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
	}
	return int(min(limit.Cur, uint64(1<<20)))
}

// residentMemory returns the resident memory of a server in bytes.
func residentMemory(t *testing.T, s *blackbox.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Cmd.Process.Pid))
	if err != nil {
		testkit.SkipUnsupported(t, "memory usage is not available on this system")
	}
	pages := check.Try(strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)).OK(t)
	return pages * int64(os.Getpagesize())
}
