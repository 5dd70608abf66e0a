package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// inbox is a receiver of webhooks, which takes a moment for each.
type inbox struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	bodies map[string]string // by webhook-id
	times  map[string]int    // how often an id came
	ids    map[thing]string
	wrong  int // an id with two bodies, or a thing with two ids
	last   time.Time
	peer   string // who sent the last one
}

// thing is what an event tells of: there is one event for each.
type thing struct {
	Type    string
	Release int
	Slug    string
}

const receiving = 10 * time.Millisecond

func newInbox() (*inbox, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	in := &inbox{address: listener.Addr().String(), bodies: map[string]string{}, times: map[string]int{}, ids: map[thing]string{}}
	in.server = &http.Server{Handler: in}
	go func() { _ = in.server.Serve(listener) }()
	return in, nil
}

// ServeHTTP takes an event.
func (in *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off
	}
	in.take(r.Header.Get("webhook-id"), string(body), r.RemoteAddr)
	time.Sleep(receiving)
}

func (in *inbox) take(id, body, peer string) {
	var what thing
	_ = json.Unmarshal([]byte(body), &what) // what cannot be read is one thing together
	in.mu.Lock()
	defer in.mu.Unlock()
	if before, known := in.bodies[id]; known && before != body {
		in.wrong++
	}
	if before, known := in.ids[what]; known && before != id {
		in.wrong++
	}
	in.bodies[id], in.ids[what] = body, id
	in.times[id]++
	in.last, in.peer = time.Now(), peer
}

// arrived tells how many different events have come, and who sent the last.
func (in *inbox) arrived() (n int, peer string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.bodies), in.peer
}

// tally compares what came with what should have: how many never came, how
// many came more than once, and how many ids were not one event's own.
func (in *inbox) tally(ids []string) (lost, doubled, wrong int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range ids {
		switch n := in.times[id]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	return lost, doubled, in.wrong
}

func (in *inbox) close() { _ = in.server.Close() }
