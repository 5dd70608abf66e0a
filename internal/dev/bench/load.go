package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/blackbox"
)

// requests are sent by a generator that does as little as possible, because it shares
// the processors with the server: it writes prepared texts, and reads only the status
// and the length of responses. Libraries take several times as much CPU time.
type requests struct {
	server      *blackbox.Server
	texts       []string // sent in turn
	connections int      // 16 if 0
	length      time.Duration
	count       int  // if there is no length
	status      int  // expected; 200 if 0
	addresses   bool // each request comes from a different client address
}

// results are those of one round or more.
type results struct {
	requests       int
	took, p50, p99 time.Duration
}

// add adds another round, and keeps the worse percentiles.
func (r *results) add(round results) {
	r.requests += round.requests
	r.took += round.took
	r.p50, r.p99 = max(r.p50, round.p50), max(r.p99, round.p99)
}

// number stands for the number of the request, with seven digits.
const number = "{number}"

const connections = 16

// auth is the header with the key.
func (b *bed) auth() string { return "Authorization: Bearer " + b.key + "\r\n" }

func getText(path, headers string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n"
}

func postText(path, body, headers string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		path, len(body)+strings.Count(body, number)*(7-len(number)), headers, body)
}

// send sends the requests. It ends the run if a response has another status than the
// expected one.
func (r requests) send(t testing.TB) results {
	var sent, unexpected atomic.Int64
	var all sync.WaitGroup
	latencies := make([][]time.Duration, cmp.Or(r.connections, connections))
	start := time.Now()
	more := func(n int64) bool { return n <= int64(r.count) || time.Since(start) < r.length }
	for i := range latencies {
		all.Go(func() {
			conn, err := net.Dial("tcp", r.server.Address)
			check.OK(t, err)
			defer conn.Close()
			responses := bufio.NewReaderSize(conn, 64<<10)
			for n := sent.Add(1); more(n); n = sent.Add(1) {
				request := r.text(n)
				begin := time.Now()
				_, err := io.WriteString(conn, request)
				check.OK(t, err)
				if status := readResponse(t, responses); status != cmp.Or(r.status, http.StatusOK) {
					unexpected.Add(1)
				}
				latencies[i] = append(latencies[i], time.Since(begin))
			}
		})
	}
	all.Wait()
	took := slices.Sorted(slices.Values(slices.Concat(latencies...)))
	check.MustTrue(t, len(took) > 0, "got no response from %s, want some", r.server.Address)
	check.MustTrue(t, unexpected.Load() == 0 || r.status == anyStatus,
		"got %d of %d responses with an unexpected status, want 0", unexpected.Load(), len(took))
	return results{len(took), time.Since(start), took[len(took)/2], took[len(took)*99/100]}
}

const anyStatus = -1

// text returns the n-th request.
func (r requests) text(n int64) string {
	text := r.texts[n%int64(len(r.texts))]
	if strings.Contains(text, number) {
		text = strings.ReplaceAll(text, number, fmt.Sprintf("%07d", n))
	}
	if r.addresses {
		a := uint32(n) * 2654435761 % 1_000_000 // a million addresses in random order
		text = fmt.Sprintf("%sX-Forwarded-For: 100.%d.%d.%d\r\n\r\n", text[:len(text)-2], a>>16&255, a>>8&255, a&255)
	}
	return text
}

// readResponse reads one response to its end.
func readResponse(t testing.TB, r *bufio.Reader) (status int) {
	const name = "content-length:"
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		check.OK(t, err)
		switch {
		case status == 0:
			status, err = strconv.Atoi(string(line[9:12]))
		case len(line) <= 2:
			_, err = r.Discard(length)
			check.OK(t, err)
			return status
		case len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name):
			length, err = strconv.Atoi(strings.TrimSpace(string(line[len(name):])))
		}
		check.OK(t, err)
	}
}
