// Package mail writes the emails of the service and sends them over SMTP.
// Without a mail server, it logs them instead.
package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
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
	maxConnections = 4 // to the mail server, at a time
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
	ID                      string // the same for all attempts to send it; empty for a random one
	To, Subject, Text, HTML string
	Link, Code              string // what is logged without a mail server; may be empty
}

// Config configures a Mailer.
type Config struct {
	URL  string // smtp://user:password@host:587 (STARTTLS) or smtps://…:465 (TLS); empty to log emails
	From string // "Name <address>" or an address
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

	started  chan struct{}   // closed by Run once it has set the contexts
	stopping context.Context // ends when failed emails are not retried any more
	sending  context.Context // ends when emails are not sent any more
	slots    chan struct{}   // holds one element per attempt in progress

	mu      sync.Mutex
	idle    sync.Cond // signaled when an email is no longer pending
	pending int       // emails that are queued, being sent or waiting for a retry
	stopped bool      // new emails are rejected

	Sent, Failed atomic.Int64
}

// email is a message in its final form. All attempts send the same Message-ID,
// so that an email that arrives twice can be recognized.
type email struct {
	to  string
	raw []byte
}

// New returns a Mailer. Queued emails are sent once Run is called.
func New(cfg Config) (*Mailer, error) {
	m := &Mailer{
		log: cfg.Log, retryDelays: retryDelays, attemptTimeout: attemptTimeout, shutdownTimeout: shutdownTimeout,
		started: make(chan struct{}), slots: make(chan struct{}, maxConnections),
	}
	m.idle.L = &m.mu
	if cfg.URL == "" {
		return m, nil
	}
	var err error
	if m.server, err = parseServer(cfg.URL); err != nil {
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

// Enqueue queues an email without blocking, and logs an email that it loses. Its error is
// ErrQueueFull, or a *problem.Problem with the message itself, such as an invalid address.
func (m *Mailer) Enqueue(msg Message) error {
	e, err := m.compose(msg)
	if err != nil {
		m.LogFailure(msg.To, err)
	}
	if e == nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || m.pending == queueLength {
		m.LogFailure(msg.To, ErrQueueFull)
		return ErrQueueFull
	}
	m.pending++
	go m.deliverWithRetries(e)
	return nil
}

// Send sends an email now, in a single attempt. Its error is a *problem.Problem,
// whose cause may contain the mail server's words and parts of the email.
func (m *Mailer) Send(ctx context.Context, msg Message) error {
	e, err := m.compose(msg)
	if e == nil {
		return err
	}
	return m.deliver(ctx, e)
}

// compose returns an email to be sent, or nil if it was logged instead.
func (m *Mailer) compose(msg Message) (*email, error) {
	to, err := recipient(msg.To)
	if err != nil {
		return nil, &problem.Problem{Code: problem.BadInput, Message: "The email address is not valid.", Cause: err}
	}
	if m.LogsOnly() {
		m.logMessage(msg)
		return nil, nil
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(m.from)
	out.ToMailAddress(&mail.Address{Address: to})
	out.Subject(oneLine(msg.Subject))
	out.SetDate()
	out.SetMessageIDWithValue(cmp.Or(msg.ID, rand.Text()) + "@" + domainOf(m.from.Address))
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

func (m *Mailer) logMessage(msg Message) {
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
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	m.stopping, m.sending = ctx, sending
	close(m.started)
	<-ctx.Done()
	defer time.AfterFunc(m.shutdownTimeout, cancel).Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.pending > 0 { // emails may still be queued during shutdown
		m.idle.Wait()
	}
	m.stopped = true
}

// deliverWithRetries makes attempts once Run has started. After Run has to stop, it
// makes only one more.
func (m *Mailer) deliverWithRetries(e *email) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.pending--
		m.idle.Signal()
	}()
	<-m.started
	for attempt := 0; ; attempt++ {
		last := attempt == len(m.retryDelays) || m.stopping.Err() != nil
		m.slots <- struct{}{}
		err := m.deliver(m.sending, e)
		<-m.slots
		if err == nil {
			return
		}
		if last || !IsTemporary(err) {
			m.LogFailure(e.to, err)
			return
		}
		if attempt == 0 {
			m.LogRetry(e.to, err)
		}
		select {
		case <-time.After(m.retryDelays[attempt]):
		case <-m.stopping.Done():
		}
	}
}

// LogRetry logs that an email will be sent again.
func (m *Mailer) LogRetry(to string, err error) {
	m.log.Warn("sending an email failed, will retry", logAttributes(to, err)...)
}

// LogFailure logs and counts that an email will not be sent.
func (m *Mailer) LogFailure(to string, err error) {
	m.Failed.Add(1)
	m.log.Error("sending an email failed", logAttributes(to, err)...)
}
