// Package mail writes the emails of the service and sends them over SMTP.
// Without a mail server, it logs them instead.
package mail

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/mail"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"palmares/internal/core/problem"
)

const (
	queueLength    = 1000
	workerCount    = 4
	attemptTimeout = 15 * time.Second
	// shutdownTimeout is how long Run keeps sending queued emails after its
	// context ends.
	shutdownTimeout = 10 * time.Second
)

// retryDelays are the delays between a failed attempt and the next one.
var retryDelays = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute}

// ErrQueueFull reports that the queue is full or the Mailer has stopped.
var ErrQueueFull = problem.New(problem.Unavailable, "Too many emails are waiting to be sent. Try again in a minute.")

// Message is an email to one address.
type Message struct {
	To, Subject, Text, HTML string
	Link, Code              string // what is logged without a mail server; may be empty
}

// Config configures a Mailer.
type Config struct {
	URL  string      // smtp://user:password@host:587 (STARTTLS) or smtps://…:465 (TLS); empty to log emails
	From string      // "Name <address>" or an address
	TLS  *tls.Config // nil for the system's certificate authorities
	Log  *slog.Logger
}

// Mailer sends emails, immediately or from a queue in memory.
type Mailer struct {
	server *server // nil if emails are logged
	from   *mail.Address
	log    *slog.Logger

	retryDelays     []time.Duration
	attemptTimeout  time.Duration
	shutdownTimeout time.Duration

	queue chan *email // has room for all pending emails

	mu       sync.Mutex
	pending  int // emails that are queued, being sent or waiting for a retry
	retrying map[*email]*time.Timer
	stopping bool // failed emails are not retried
	stopped  bool // new emails are rejected

	Sent, Failed atomic.Int64
}

// email is a message in its final form. All attempts send the same Message-ID,
// so that an email that arrives twice can be recognized.
type email struct {
	to       string
	raw      []byte
	attempts int // failed ones
}

// New returns a Mailer. Queued emails are sent once Run is called.
func New(cfg Config) (*Mailer, error) {
	m := &Mailer{
		log: cfg.Log, retryDelays: retryDelays, attemptTimeout: attemptTimeout, shutdownTimeout: shutdownTimeout,
		queue: make(chan *email, queueLength), retrying: map[*email]*time.Timer{},
	}
	if cfg.URL == "" {
		return m, nil
	}
	var err error
	if m.server, err = parseServer(cfg.URL, cfg.TLS); err != nil {
		return nil, fmt.Errorf("the mail server URL %w", err)
	}
	if m.from, err = parseFrom(cfg.From); err != nil {
		return nil, fmt.Errorf("the sender address %w", err)
	}
	return m, nil
}

// LogsOnly reports whether emails are logged instead of sent.
func (m *Mailer) LogsOnly() bool { return m.server == nil }

// HasPassword reports whether the Mailer signs in to the mail server.
func (m *Mailer) HasPassword() bool { return m.server != nil && m.server.user != "" }

// Pending returns how many emails are queued, being sent or waiting for a retry.
func (m *Mailer) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pending
}

// Enqueue queues an email without blocking. Its error is ErrFull, or a
// *problem.Problem with the message itself, such as an invalid address.
func (m *Mailer) Enqueue(msg Message) error {
	e, err := m.compose(msg)
	switch {
	case err != nil:
		m.giveUp(msg.To, err)
		return err
	case m.LogsOnly():
		m.print(msg)
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.pending == queueLength {
		return ErrQueueFull
	}
	m.pending++
	m.queue <- e
	return nil
}

// Send sends an email now, in a single attempt. Its error is a *problem.Problem,
// whose cause may contain the mail server's words and parts of the email.
func (m *Mailer) Send(ctx context.Context, msg Message) error {
	e, err := m.compose(msg)
	switch {
	case err != nil:
		return err
	case m.LogsOnly():
		m.print(msg)
		return nil
	}
	return m.deliver(ctx, e)
}

func (m *Mailer) compose(msg Message) (*email, error) {
	to, err := recipient(msg.To)
	if err != nil {
		return nil, &problem.Problem{Code: problem.BadInput, Message: "The email address is not valid.", Cause: err}
	}
	if m.LogsOnly() {
		return &email{to: to}, nil
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(m.from)
	out.ToMailAddress(&mail.Address{Address: to})
	out.Subject(oneLine(msg.Subject))
	out.SetDate()
	out.SetMessageIDWithValue(rand.Text() + "@" + domainOf(m.from.Address))
	out.SetGenHeader("Auto-Submitted", "auto-generated")
	out.SetBodyString(gomail.TypeTextPlain, msg.Text)
	if msg.HTML != "" {
		out.AddAlternativeString(gomail.TypeTextHTML, msg.HTML)
	}
	var raw bytes.Buffer
	if _, err := out.WriteTo(&raw); err != nil {
		return nil, &problem.Problem{Code: problem.Internal, Message: "The email could not be written.", Cause: err}
	}
	return &email{to: to, raw: raw.Bytes()}, nil
}

// oneLine replaces line breaks and control characters, which could add headers.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

func (m *Mailer) print(msg Message) {
	attributes := []any{"to", msg.To, "subject", msg.Subject}
	if msg.Link != "" {
		attributes = append(attributes, "link", msg.Link)
	}
	if msg.Code != "" {
		attributes = append(attributes, "code", msg.Code)
	}
	m.log.Info("email not sent: no mail server is configured", attributes...)
}

// Run sends queued emails until ctx ends, and then the remaining ones for at
// most 10 seconds. Emails that wait for a retry get a last attempt then.
func (m *Mailer) Run(ctx context.Context) {
	if m.LogsOnly() {
		<-ctx.Done()
		return
	}
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	draining := make(chan struct{})
	var workers sync.WaitGroup
	for range workerCount {
		workers.Go(func() {
			for {
				select {
				case e := <-m.queue:
					m.attempt(sending, e)
				case <-draining:
					m.drain(func(e *email) { m.attempt(sending, e) })
					return
				}
			}
		})
	}
	<-ctx.Done()
	defer time.AfterFunc(m.shutdownTimeout, cancel).Stop()
	m.mu.Lock()
	m.stopping = true
	for e := range m.retrying {
		m.requeue(e)
	}
	m.mu.Unlock()
	close(draining)
	workers.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	m.drain(func(e *email) {
		m.giveUp(e.to, problem.New(problem.Unavailable, "It was queued after shutdown."))
	})
}

// drain handles the queued emails without waiting for more.
func (m *Mailer) drain(handle func(*email)) {
	for {
		select {
		case e := <-m.queue:
			handle(e)
		default:
			return
		}
	}
}

// attempt tries to deliver an email, and plans a retry if it fails.
func (m *Mailer) attempt(ctx context.Context, e *email) {
	err := m.deliver(ctx, e)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.pending--
	case m.stopping || !isTemporary(err) || e.attempts == len(m.retryDelays):
		m.pending--
		m.giveUp(e.to, err)
	default:
		if e.attempts == 0 {
			m.log.Warn("sending an email failed, will retry", logAttributes(e.to, err)...)
		}
		m.retrying[e] = time.AfterFunc(m.retryDelays[e.attempts], func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.requeue(e)
		})
		e.attempts++
	}
}

// requeue ends the wait for a retry. The caller holds the mutex.
func (m *Mailer) requeue(e *email) {
	if timer, waiting := m.retrying[e]; waiting {
		timer.Stop()
		delete(m.retrying, e)
		m.queue <- e
	}
}

// giveUp logs that an email will not be sent.
func (m *Mailer) giveUp(to string, err error) {
	m.Failed.Add(1)
	m.log.Error("sending an email failed", logAttributes(to, err)...)
}
