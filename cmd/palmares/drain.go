package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// lameDuck is how long connections may still bring a request after the
	// server was told to end: what has begun to arrive must be complete by
	// then anyway.
	lameDuck = readHeaderTimeout
	// drainTimeout is how long answers may take after that.
	drainTimeout = 30 * time.Second
	// backgroundTimeout is how long work that nobody waits for may take to end:
	// more than letters and deliveries ask for.
	backgroundTimeout = 15 * time.Second
)

// drain ends serving without cutting a request. Who sends requests here is
// first given time to see that this server is not ready any more. The standard library's
// Shutdown alone drops a request whose header is still arriving, and one that
// crosses the closing of its idle connection; so the connections that are open
// may first bring one more request each.
func (p *program) drain() error {
	p.health.draining.Store(true)
	if delay := p.settings.DrainDelay; delay > 0 {
		p.log.Info("ending: not ready any more, for a load balancer to notice", "delay", delay)
		time.Sleep(delay)
	}
	p.log.Info("ending: answering what is in flight")
	p.closing.Store(true)
	_ = p.listener.Close()
	p.graphql.Close() // streams would never end by themselves
	for deadline := time.Now().Add(lameDuck); p.conns.open.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := p.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		return errors.New("some requests were still unanswered after " + drainTimeout.String())
	}
	return nil
}

// closeWhenDraining asks each client to come back on another connection.
func (p *program) closeWhenDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.closing.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// connCounter counts the connections that are open.
type connCounter struct{ open atomic.Int64 }

func (c *connCounter) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	}
}
