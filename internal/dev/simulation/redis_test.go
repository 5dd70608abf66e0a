package simulation

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"palmares/internal/core/quota"
	"palmares/internal/dev/testkit"
)

// fakeRedis counts as the script of package quota does; TestFakeLikeWithRedis compares
// them.
type fakeRedis struct {
	mu      sync.Mutex
	tallies map[string]tally
	down    bool
	thawed  chan struct{} // closed unless Redis is frozen
	latency time.Duration
	conns   map[net.Conn]*machine
}

type tally struct{ granted, refunded int }

const redisLatency = time.Millisecond

func newFakeRedis() *fakeRedis {
	r := &fakeRedis{tallies: map[string]tally{}, conns: map[net.Conn]*machine{}, latency: redisLatency, thawed: make(chan struct{})}
	close(r.thawed)
	return r
}

// connect returns the option that makes a machine connect to the fake.
func (r *fakeRedis) connect(m *machine) redis.DialOption {
	return redis.DialContextFunc(func(context.Context, string, string) (net.Conn, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.down || m.dead.Load() {
			return nil, syscall.ECONNREFUSED
		}
		client, server := net.Pipe()
		r.conns[server] = m
		go r.serve(server)
		return client, nil
	})
}

// serve executes commands in order, while more of them arrive.
func (r *fakeRedis) serve(conn net.Conn) {
	commands := make(chan []string, 1024)
	go func() {
		defer close(commands)
		for in := redis.NewConn(conn, 0, 0); ; { // a command has the form of a reply
			command, err := redis.Strings(in.Receive())
			if err != nil {
				return
			}
			commands <- command
		}
	}()
	for command := range commands {
		r.mu.Lock()
		thawed, latency := r.thawed, r.latency
		r.mu.Unlock()
		<-thawed
		time.Sleep(latency / 2)
		reply := r.execute(conn, command)
		time.Sleep(latency / 2)
		_, _ = io.WriteString(conn, reply)
	}
	_ = conn.Close()
	r.mu.Lock()
	delete(r.conns, conn)
	r.mu.Unlock()
}

// execute returns the reply to a command, or "" if the connection was cut before.
func (r *fakeRedis) execute(conn net.Conn, command []string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.conns[conn] == nil:
		return ""
	case command[0] == "PING":
		return "+PONG\r\n"
	case command[0] != "EVAL" || len(command) != 11:
		return "-ERR unknown command\r\n"
	}
	var args [7]int // see countScript in package quota
	for i, text := range command[4:] {
		args[i], _ = strconv.Atoi(text)
	}
	stored := r.tallies[command[3]]
	t := tally{max(args[0], stored.granted) + args[2], max(args[1], stored.refunded) + args[3]}
	t.granted = max(t.granted, t.refunded)
	change, limit := args[4], args[5]
	if limit > 0 && t.granted-t.refunded >= limit {
		change = 0
	}
	change = max(change, t.refunded-t.granted)
	t = tally{t.granted + max(change, 0), t.refunded - min(change, 0)}
	r.tallies[command[3]] = t
	return fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n:%d\r\n", t.granted, t.refunded, change)
}

// cut closes the connections of machines.
func (r *fakeRedis) cut(of func(*machine) bool) {
	for conn, m := range r.conns {
		if of(m) {
			_ = conn.Close()
			delete(r.conns, conn)
		}
	}
}

// disconnect cuts a machine off for good.
func (r *fakeRedis) disconnect(m *machine) {
	m.dead.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut(func(other *machine) bool { return other == m })
}

// stop closes all connections, and forgets everything if it is to restart empty.
func (r *fakeRedis) stop(empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	r.cut(func(*machine) bool { return true })
	if empty {
		clear(r.tallies)
	}
}

// respond sets how fast Redis responds. If it freezes, it accepts commands and executes
// them later.
func (r *fakeRedis) respond(latency time.Duration, freeze bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency = latency
	select {
	case <-r.thawed:
		if freeze {
			r.thawed = make(chan struct{})
		}
	default:
		if !freeze {
			close(r.thawed)
		}
	}
}

// recover ends all faults.
func (r *fakeRedis) recover() {
	r.respond(redisLatency, false)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

// The fake counts like Redis.
func TestFakeLikeWithRedis(t *testing.T) {
	server, w := testkit.StartRedis(t), &world{T: t}
	var stores []quota.Store
	for _, options := range [][]redis.DialOption{nil, {newFakeRedis().connect(newMachine("fake"))}} {
		s, err := quota.NewRedis(server.URL, quota.NewCounter(), discard, options...)
		w.check(err)
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	for i := range 2_000 {
		subject, limit := quota.Account(i%7), i%5*20
		var counts []int
		for _, s := range stores {
			switch i * 31 % 11 {
			case 0, 1, 2:
				s.Refund(t.Context(), subject, 1)
			case 3:
				counts = append(counts, s.Count(t.Context(), subject, 1))
			default:
				counts = append(counts, s.Take(t.Context(), subject, 1, limit))
			}
		}
		if len(counts) > 0 && counts[0] != counts[1] {
			t.Fatalf("step %d: got count %d from the fake, want %d", i, counts[1], counts[0])
		}
	}
}
