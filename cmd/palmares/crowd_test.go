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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

const (
	idlers      = 10_000
	slowReaders = 300
	slowSenders = 300
	// eachIdler is what an idle connection may cost in memory. Go's server keeps
	// two buffers of 4 kB and a stack for each.
	eachIdler = 40 << 10
	// asked is how many other requests are sent, before and beside the crowd.
	asked = 400
)

// Ten thousand connections that do nothing, and hundreds that read or send a
// byte at a time, are in nobody's way, and cost a bounded memory.
func TestCrowdOfIdleAndSlowClients(t *testing.T) {
	crowd := raiseFiles(t, idlers+slowReaders+slowSenders+500) - slowReaders - slowSenders - 500
	if crowd < 100 {
		testkit.CannotRun(t, fmt.Sprintf("the system allows for %d connections only", crowd))
	}
	crowd = min(crowd, idlers)
	s := serving(t, shipped(t, testkit.SQLite(t), "serve", "--demo", "--listen", "127.0.0.1:0"))
	others(t, s) // the first fill caches
	alone := others(t, s)
	before := resident(t, s)

	var open conns
	defer open.close()
	open.dial(t, s.address, crowd, func(c net.Conn) { // each has asked once, and is kept
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		if err != nil {
			t.Errorf("an idle client: %v", err)
		}
	})
	idle := resident(t, s)

	var slow conns
	defer slow.close()
	slow.dial(t, s.address, slowReaders, func(c net.Conn) { // megabytes of answers, which nobody reads
		fmt.Fprint(c, strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: palmares\r\n\r\n", 50))
	})
	slow.dial(t, s.address, slowSenders, func(c net.Conn) { fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nX-Slow: ") })
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

	settles(t, s)
	beside := others(t, s)
	crowded := resident(t, s)
	cut := 0
	patience := time.Now().Add(wait.Limit)
	for _, c := range sending { // each is sent away when it has had its time
		_ = c.SetReadDeadline(patience)
		if _, err := io.Copy(io.Discard, c); err == nil || !os.IsTimeout(err) {
			cut++
		}
	}
	t.Logf("%d idle, %d slow readers, %d slow senders: %d other requests took %s of processor time (%s without them); "+
		"resident %d MB before, %d MB with the idle, %d MB with all; %d of the slow senders were sent away after %s",
		crowd, slowReaders, slowSenders, asked, beside, alone, before>>20, idle>>20, crowded>>20, cut, readHeaderTimeout)
	// All others were answered, and none of them is more work because of the
	// crowd. What the crowd itself costs meanwhile is in here, too.
	if limit := 20 * max(alone, 250*time.Millisecond); beside > limit {
		t.Errorf("got %s of processor time for %d requests beside the crowd, want at most %s", beside, asked, limit)
	}
	if limit := before + int64(crowd)*eachIdler + 64<<20; crowded > limit {
		t.Errorf("%d MB resident, more than %d", crowded>>20, limit>>20)
	}
	if cut < len(sending) {
		t.Errorf("only %d of %d slow senders were sent away", cut, len(sending))
	}
}

// others send requests, a few at a time, which are all answered, and return the
// processor time that the server has used meanwhile.
func others(t *testing.T, s *server) time.Duration {
	t.Helper()
	before := processorTime(t, s)
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			client := &http.Client{Timeout: wait.Limit, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for range asked / 4 {
				answer, err := client.Get("http://" + s.address + "/tools/plume")
				if err != nil {
					t.Errorf("another client: %v", err)
					return
				}
				if answer.StatusCode != http.StatusOK {
					t.Errorf("another client: got %d, want 200", answer.StatusCode)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		})
	}
	asking.Wait()
	return processorTime(t, s) - before
}

// settles waits until the server has little to do: what slow readers asked for
// is made as far as there is room for it.
func settles(t *testing.T, s *server) {
	t.Helper()
	last := processorTime(t, s)
	wait.Until(t, "the server has little to do", func() bool {
		time.Sleep(500 * time.Millisecond)
		before := last
		last = processorTime(t, s)
		return last-before < 50*time.Millisecond
	})
}

// processorTime is what a process has used.
func processorTime(t *testing.T, s *server) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		testkit.CannotRun(t, "processor time cannot be read here")
	}
	// The name, in brackets, may hold spaces; user and system time are the 14th
	// and 15th field, in hundredths of a second on every Linux.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// conns are connections that are kept open.
type conns struct{ all []net.Conn }

// dial opens connections, some at a time, from so many addresses of this
// machine that their ports suffice.
func (c *conns) dial(t *testing.T, address string, number int, then func(net.Conn)) {
	t.Helper()
	opened := make([]net.Conn, number)
	var next atomic.Int64
	var dialling sync.WaitGroup
	for range 32 {
		dialling.Go(func() {
			for i := int(next.Add(1)) - 1; i < number; i = int(next.Add(1)) - 1 {
				from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}
				conn, err := (&net.Dialer{LocalAddr: from, Timeout: wait.Limit, Control: littleRoom}).Dial("tcp", address)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				opened[i] = conn
				then(conn)
			}
		})
	}
	dialling.Wait()
	for _, conn := range opened {
		if conn != nil {
			c.all = append(c.all, conn)
		}
	}
	if len(c.all) < number {
		t.Fatalf("only %d of %d connections", len(c.all), number)
	}
}

// littleRoom keeps the system from taking in what nobody reads.
func littleRoom(_, _ string, conn syscall.RawConn) (err error) {
	failed := conn.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	return errors.Join(failed, err)
}

func (c *conns) close() {
	for _, conn := range c.all {
		_ = conn.Close()
	}
}

// raiseFiles asks for so many open files, here and in processes that are
// started from now on, and tells how many there may be.
func raiseFiles(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	before := limit
	if limit.Cur < uint64(wanted) {
		limit.Cur = min(limit.Max, uint64(wanted))
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Logf("no more than %d files: %v", before.Cur, err)
			limit = before
		}
		t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
	}
	return int(min(limit.Cur, uint64(1<<20)))
}

// resident is what a process holds in memory.
func resident(t *testing.T, s *server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		testkit.CannotRun(t, "memory cannot be read here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
