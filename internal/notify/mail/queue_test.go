package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"palmares/internal/core/problem"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestTemporaryRefusal(t *testing.T) {
	var mu sync.Mutex
	attempts := 0
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if attempts++; attempts < 3 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{10 * time.Millisecond, 10 * time.Millisecond, time.Hour}
	run(t, m)
	m.Post(private(ana))
	parts(t, server.Wait(t, ana))
	if attempts != 3 || log.count(`"level":"WARN"`) != 1 || log.count("\n") != 1 {
		t.Errorf("%d attempts, and the log has %s", attempts, log)
	}
}

func TestServerComesUp(t *testing.T) {
	server := testkit.StartSMTP(t)
	server.Stop()
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, time.Second}
	run(t, m)
	m.Post(private(ana))
	eventually(t, "the server is missed", func() bool { return log.count("connection refused") == 1 })
	server.Start(t)
	server.Wait(t, ana)
	if log.count("ERROR") != 0 {
		t.Errorf("the log has %s", log)
	}
}

func TestGivenUpAfterTheLastAttempt(t *testing.T) {
	server := testkit.StartSMTP(t)
	server.Stop()
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{time.Millisecond, time.Millisecond}
	run(t, m)
	m.Post(private(ana))
	eventually(t, "the letter is given up", func() bool { return log.count("a letter is given up") == 1 })
	eventually(t, "its place is free", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.held == 0 && len(m.waiting) == 0
	})
	if m.GivenUp.Load() != 1 || m.Sent.Load() != 0 || m.Waiting() != 0 {
		t.Errorf("%d given up, %d sent, %d waiting", m.GivenUp.Load(), m.Sent.Load(), m.Waiting())
	}
}

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestServerNeverAnswers(t *testing.T) {
	for _, scheme := range []string{"smtp", "smtps"} {
		m, _ := newMailer(t, Config{URL: scheme + "://" + silent(t)})
		m.limit = 100 * time.Millisecond
		err := m.Send(t.Context(), private(ana)) // which ends at all, because of the limit
		if p := problem.Of(err); p.Code != problem.Unavailable || p.Message != "The mail server took too long." {
			t.Errorf("%v", err)
		}
		m.limit = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := m.Send(ctx, private(ana)); !isTemporary(err) {
			t.Errorf("%v", err)
		}
		cancel()
	}
}

// Letters that wait for another attempt are in nobody's way, and have their
// last one when the server ends.
func TestWaitingLettersAreInNobodysWay(t *testing.T) {
	var mu sync.Mutex
	busy := true
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(to string) error {
		mu.Lock()
		defer mu.Unlock()
		if busy && strings.HasPrefix(to, "slow") {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
		}
		return nil
	}})
	m, log := newMailer(t, Config{URL: server.URL})
	m.retryAfter = []time.Duration{time.Hour}
	stop := run(t, m)
	const slow = 3 * workerCount
	for i := range slow {
		m.Post(private(fmt.Sprintf("slow%d@example.com", i)))
	}
	m.Post(private(ana))
	server.Wait(t, ana)
	eventually(t, "the others wait", func() bool { return log.count("waits for another attempt") == slow })
	mu.Lock()
	busy = false
	mu.Unlock()
	stop()
	for i := range slow {
		if to := fmt.Sprintf("slow%d@example.com", i); server.Count(to) != 1 {
			t.Errorf("%s was sent %d letters", to, server.Count(to))
		}
	}
}

func TestQueue(t *testing.T) {
	server := testkit.StartSMTP(t)
	m, log := newMailer(t, Config{URL: server.URL})
	for i := range queueLength {
		if err := m.Post(private(ana)); err != nil {
			t.Fatalf("letter %d: %v", i, err)
		}
	}
	if err := m.Post(private(ana)); !errors.Is(err, ErrFull) {
		t.Errorf("more than it holds: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Run(ctx) // it has ended already: what is queued is sent all the same
	if server.Count(ana) != queueLength {
		t.Errorf("%d letters were sent", server.Count(ana))
	}
	if !errors.Is(m.Post(private(ana)), ErrFull) || log.String() != "" {
		t.Errorf("a letter was taken that nobody sends; the log has %s", log)
	}
}

func TestTheEndIsBounded(t *testing.T) {
	m, log := newMailer(t, Config{URL: "smtp://" + silent(t)})
	m.grace, m.limit = 100*time.Millisecond, time.Hour // so that only the grace period ends it
	const letters = 3 * workerCount
	for range letters {
		m.Post(private(ana))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	wait.Receive(t, "Run ends", ended)
	if log.count("a letter is given up") != letters {
		t.Errorf("the log has %s", log)
	}
}
