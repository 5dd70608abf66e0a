package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
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

// requests are sent by a separate process that does as little as possible: it
// writes prepared requests and reads only the status and length of responses.
type requests struct {
	Address     string
	Connections int
	Duration    time.Duration // or
	Count       int           // the number of requests
	Texts       []string      // sent in turn
	Status      int           // expected
	Addresses   bool          // each request comes from a different client address

	server *blackbox.Server // whose CPU time is measured
}

// results are the results of requests.
type results struct {
	Requests   int
	Unexpected int // responses with an unexpected status
	Took       time.Duration
	P50, P99   time.Duration
}

// add adds the results of another round, and keeps the worse percentiles.
func (r *results) add(round results) {
	r.Requests += round.Requests
	r.Took += round.Took
	r.P50, r.P99 = max(r.P50, round.P50), max(r.P99, round.P99)
}

func (r results) perSecond() float64 { return float64(r.Requests) / r.Took.Seconds() }

// number stands for the number of the request, with seven digits.
const number = "{number}"

const connections = 16

func bearer(key string) string { return "Authorization: Bearer " + key + "\r\n" }

func getText(path, headers string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n"
}

func postText(path, body, headers string) string {
	length := len(body) + strings.Count(body, number)*(7-len(number))
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", path, length, headers, body)
}

// send starts the process and waits for its results.
func (r requests) send(t testing.TB) (got results) {
	r.Connections, r.Status = cmp.Or(r.Connections, connections), cmp.Or(r.Status, http.StatusOK)
	input, err := json.Marshal(r)
	check.OK(t, err)
	cmd := exec.Command(os.Args[0], "generate-load")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	check.OK(t, err)
	check.OK(t, json.Unmarshal(out, &got))
	return got
}

// sendAll is like send, but fails if a response has an unexpected status.
func (r requests) sendAll(t testing.TB) results {
	got := r.send(t)
	if got.Unexpected > 0 {
		t.Fatalf("got %d of %d responses with an unexpected status, want 0", got.Unexpected, got.Requests)
	}
	return got
}

// generateLoad runs in the separate process.
func generateLoad(t testing.TB) {
	var r requests
	check.OK(t, json.NewDecoder(os.Stdin).Decode(&r))
	var sent, unexpected atomic.Int64
	var all sync.WaitGroup
	latencies := make([][]time.Duration, r.Connections)
	start := time.Now()
	more := func(n int64) bool { return r.Count > 0 && n <= int64(r.Count) || time.Since(start) < r.Duration }
	for i := range r.Connections {
		all.Go(func() {
			conn, err := net.Dial("tcp", r.Address)
			check.OK(t, err)
			defer conn.Close()
			responses := bufio.NewReaderSize(conn, 64<<10)
			for n := sent.Add(1); more(n); n = sent.Add(1) {
				request := r.text(n)
				begin := time.Now()
				_, err := io.WriteString(conn, request)
				check.OK(t, err)
				if status := readResponse(t, responses); status != r.Status {
					unexpected.Add(1)
				}
				latencies[i] = append(latencies[i], time.Since(begin))
			}
		})
	}
	all.Wait()
	took := slices.Concat(latencies...)
	got := results{Requests: len(took), Unexpected: int(unexpected.Load()), Took: time.Since(start)}
	if len(took) > 0 {
		slices.Sort(took)
		got.P50, got.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	check.OK(t, json.NewEncoder(os.Stdout).Encode(got))
}

// text returns the n-th request.
func (r requests) text(n int64) string {
	text := r.Texts[n%int64(len(r.Texts))]
	if strings.Contains(text, number) {
		text = strings.ReplaceAll(text, number, fmt.Sprintf("%07d", n))
	}
	if r.Addresses {
		a := uint32(n) * 2654435761 % 1_000_000 // a million addresses in random order
		text = fmt.Sprintf("%sX-Forwarded-For: 100.%d.%d.%d\r\n\r\n", text[:len(text)-2], a>>16&255, a>>8&255, a&255)
	}
	return text
}

// readResponse reads one response to its end.
func readResponse(t testing.TB, r *bufio.Reader) (status int) {
	line, err := r.ReadSlice('\n')
	check.OK(t, err)
	status, err = strconv.Atoi(string(line[9:12]))
	check.OK(t, err)
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		check.OK(t, err)
		if len(line) <= 2 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			length, err = strconv.Atoi(strings.TrimSpace(string(line[len(name):])))
			check.OK(t, err)
		}
	}
	_, err = r.Discard(length)
	check.OK(t, err)
	return status
}
