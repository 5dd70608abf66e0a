package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The load generator is a process of its own, and does as little as it can:
// it writes requests that are made before, and reads no more of an answer than
// its length and status.

// load is what to send. Each request is one of the variants in turn, with what
// its number makes of the word that stands for it.
type load struct {
	Address     string
	Connections int
	Duration    time.Duration
	Requests    []string
	Status      int
	Addresses   bool // each request comes from another address
}

// outcome is what came of it.
type outcome struct {
	Requests int
	Wrong    int // answers with another status
	Took     time.Duration
	P50, P99 time.Duration
}

func (o outcome) perSecond() float64 { return float64(o.Requests) / o.Took.Seconds() }

// varying stands in a request for its number.
const varying = "{number}"

// generateLoad is the process.
func generateLoad() error {
	var l load
	if err := json.NewDecoder(os.Stdin).Decode(&l); err != nil {
		return err
	}
	result, err := l.run()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func (l load) run() (outcome, error) {
	var number atomic.Int64
	var all sync.WaitGroup
	results := make([]outcome, l.Connections)
	latencies := make([][]time.Duration, l.Connections)
	failures := make([]error, l.Connections)
	start := time.Now()
	deadline := start.Add(l.Duration)
	for i := range l.Connections {
		all.Go(func() { results[i], latencies[i], failures[i] = l.connection(&number, deadline) })
	}
	all.Wait()
	total := outcome{Took: time.Since(start)}
	for _, r := range results {
		total.Requests += r.Requests
		total.Wrong += r.Wrong
	}
	took := slices.Concat(latencies...)
	slices.Sort(took)
	if len(took) > 0 {
		total.P50, total.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return total, errors.Join(failures...)
}

func (l load) connection(number *atomic.Int64, deadline time.Time) (result outcome, latencies []time.Duration, err error) {
	conn, err := net.Dial("tcp", l.Address)
	if err != nil {
		return result, nil, err
	}
	defer conn.Close()
	answers := bufio.NewReaderSize(conn, 64<<10)
	var request []byte
	for time.Now().Before(deadline) {
		n := number.Add(1)
		request = l.write(request[:0], n)
		begin := time.Now()
		if _, err := conn.Write(request); err != nil {
			return result, latencies, err
		}
		status, err := readAnswer(answers)
		if err != nil {
			return result, latencies, err
		}
		latencies = append(latencies, time.Since(begin))
		result.Requests++
		if status != l.Status {
			result.Wrong++
		}
	}
	return result, latencies, nil
}

// write makes the request of a number.
func (l load) write(into []byte, n int64) []byte {
	text := l.Requests[n%int64(len(l.Requests))]
	before, after, found := strings.Cut(text, varying)
	into = append(into, before...)
	if found {
		into = strconv.AppendInt(into, n, 10)
		into = append(into, after...)
	}
	if l.Addresses {
		a := uint32(n) * 2654435761 % 1_000_000 // a million of them, in no order
		into = into[:len(into)-2]               // the empty line
		into = fmt.Appendf(into, "X-Forwarded-For: 100.%d.%d.%d\r\n\r\n", a>>16&255, a>>8&255, a&255)
	}
	return into
}

// readAnswer reads one answer to its end.
func readAnswer(r *bufio.Reader) (status int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			if length, err = strconv.Atoi(strings.TrimSpace(string(line[len(name):]))); err != nil {
				return 0, err
			}
		}
	}
	_, err = io.CopyN(io.Discard, r, int64(length))
	return status, err
}
