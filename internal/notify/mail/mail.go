// Package mail writes the service's few letters and sends them over SMTP.
// Where no mail server is set up, it prints them to the log instead.
package mail

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/core/problem"
)

const (
	queueLength = 1000
	workerCount = 4
	// attemptTime is what one attempt at a letter may take.
	attemptTime = 15 * time.Second
	// graceTime is how long what is queued is still sent at the end.
	graceTime = 10 * time.Second
)

// retryAfter is when a letter is tried again that could not be sent.
var retryAfter = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute}

// Message is a letter to one address.
type Message struct {
	To, Subject, Text, HTML string
	Link, Code              string // what is printed where no mail is sent; may be empty
}

// Config says how letters are sent.
type Config struct {
	URL  string      // smtp://user:password@host:587 (STARTTLS) or smtps://…:465 (TLS); empty: letters are printed to the log
	From string      // "Name <address>" or an address
	TLS  *tls.Config // nil for the system's authorities
	Log  *slog.Logger
}

// Mailer sends letters, now or from a queue.
type Mailer struct {
	server *server // nil: letters are printed
	from   *mail.Address
	log    *slog.Logger

	retryAfter []time.Duration
	limit      time.Duration // of one attempt
	grace      time.Duration

	queue chan *letter // has room for all that are held

	mu      sync.Mutex
	held    int // letters that are queued, being sent, or waiting
	waiting map[*letter]*time.Timer
	ending  bool // letters do not wait any more
	ended   bool // letters are not taken any more

	Sent, GivenUp atomic.Int64 // letters
}

// Waiting is how many letters are queued, being sent, or to be tried again.
func (m *Mailer) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// New makes a Mailer. What it queues is sent once it runs.
func New(cfg Config) (*Mailer, error) {
	m := &Mailer{
		log: cfg.Log, retryAfter: retryAfter, limit: attemptTime, grace: graceTime,
		queue: make(chan *letter, queueLength), waiting: map[*letter]*time.Timer{},
	}
	if cfg.URL == "" {
		return m, nil
	}
	var err error
	if m.server, err = parseServer(cfg.URL, cfg.TLS); err != nil {
		return nil, fmt.Errorf("the mail server's address %w", err)
	}
	if m.from, err = parseFrom(cfg.From); err != nil {
		return nil, fmt.Errorf("the letters' sender %w", err)
	}
	return m, nil
}

// Prints tells whether letters go to the log.
func (m *Mailer) Prints() bool { return m.server == nil }

// ErrFull is for a letter that finds no room, or comes after the end.
var ErrFull = problem.New(problem.Unavailable, "Too many messages wait to be sent. Try again in a minute.")

// Post queues a letter, and never blocks. Its error is ErrFull, or a
// *problem.Problem of the letter itself, such as an invalid address.
func (m *Mailer) Post(msg Message) error {
	l, err := m.compose(msg)
	if err != nil {
		m.giveUp(msg.To, err)
		return err
	}
	if m.Prints() {
		m.print(msg)
		return nil
	}
	if !m.take(l) {
		return ErrFull
	}
	return nil
}

// Send sends a letter now, with one attempt. Its error is a *problem.Problem.
// What that wraps may hold a mail server's words, which may repeat the letter.
func (m *Mailer) Send(ctx context.Context, msg Message) error {
	l, err := m.compose(msg)
	if err != nil {
		return err
	}
	if m.Prints() {
		m.print(msg)
		return nil
	}
	return m.deliver(ctx, l)
}

func (m *Mailer) print(msg Message) {
	attributes := []any{"to", msg.To, "subject", msg.Subject}
	if msg.Link != "" {
		attributes = append(attributes, "link", msg.Link)
	}
	if msg.Code != "" {
		attributes = append(attributes, "code", msg.Code)
	}
	m.log.Info("no mail is set up: a letter is printed here instead", attributes...)
}
