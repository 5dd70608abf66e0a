package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/testdb"
)

const (
	idlers      = 10_000
	slowReaders = 300
	slowSenders = 300
	// eachIdler is what an idle connection may cost in memory. Go's server keeps
	// two buffers of 4 kB and a stack for each.
	eachIdler = 40 << 10
	// stuck is who is not served by then.
	stuck = 15 * time.Second
)

// Ten thousand connections that do nothing, and hundreds that read or send a
// byte at a time, are in nobody's way, and cost a bounded memory.
func TestCrowdOfIdleAndSlowClients(t *testing.T) {
	crowd := raiseFiles(t, idlers+slowReaders+slowSenders+500) - slowReaders - slowSenders - 500
	if crowd < 100 {
		testdb.CannotRun(t, fmt.Sprintf("the system allows for %d connections only", crowd))
	}
	crowd = min(crowd, idlers)
	s := serving(t, shipped(t, testdb.SQLite(t), "serve", "--demo", "--listen", "127.0.0.1:0"))
	alone := others(t, s, time.Second)
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
	begun := time.Now()
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

	took := others(t, s, max(3*time.Second, readHeaderTimeout+500*time.Millisecond-time.Since(begun)))
	crowded := resident(t, s)
	cut := 0
	patience := time.Now().Add(10 * time.Second)
	for _, c := range sending { // by now each of them has had its time
		_ = c.SetReadDeadline(patience)
		if _, err := io.Copy(io.Discard, c); err == nil || !os.IsTimeout(err) {
			cut++
		}
	}
	t.Logf("%d idle, %d slow readers, %d slow senders: of %d other requests half took up to %s (%s without them), 99 %% up to %s, all up to %s; "+
		"resident %d MB before, %d MB with the idle, %d MB with all; %d of the slow senders were sent away after %s",
		crowd, slowReaders, slowSenders, len(took), took[len(took)/2], alone[len(alone)/2], took[len(took)*99/100], took[len(took)-1],
		before>>20, idle>>20, crowded>>20, cut, readHeaderTimeout)
	// The machine may be busy with other tests, which a ratio bears; one that is
	// stuck is not answered at all.
	if half, was := took[len(took)/2], max(5*time.Millisecond, alone[len(alone)/2]); half > 20*was {
		t.Errorf("half of the others wait for %s, which was up to %s without the crowd", half, was)
	}
	if limit := before + int64(crowd)*eachIdler + 64<<20; crowded > limit {
		t.Errorf("%d MB resident, more than %d", crowded>>20, limit>>20)
	}
	if cut < len(sending) {
		t.Errorf("only %d of %d slow senders were sent away", cut, len(sending))
	}
}

// others ask for a while, a few at a time, and tell how long each answer took.
func others(t *testing.T, s *server, during time.Duration) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	deadline := time.Now().Add(during)
	for i := range 4 {
		asking.Go(func() {
			client := &http.Client{Timeout: stuck, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			for time.Now().Before(deadline) {
				start := time.Now()
				answer, err := client.Get("http://" + s.address + "/tools/plume")
				if err != nil {
					t.Errorf("another client: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	asking.Wait()
	slices.Sort(took)
	if len(took) < 20 {
		t.Fatalf("only %d others were answered", len(took))
	}
	return took
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
				conn, err := (&net.Dialer{LocalAddr: from, Timeout: stuck, Control: littleRoom}).Dial("tcp", address)
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
		testdb.CannotRun(t, "memory cannot be read here")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
