package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"

	"palmares/internal/core/problem"
)

// step is a part of a delivery, with what is said where the server refuses it.
type step struct {
	code    problem.Code
	refused string
}

var (
	connecting      = step{problem.Internal, "The mail server does not talk to us."}
	encrypting      = step{problem.Internal, "The mail server offers no encryption, and letters are not sent without."}
	signingIn       = step{problem.Internal, "The mail server does not accept our user and password."}
	namingSender    = step{problem.Internal, "The mail server does not take letters from our address."}
	namingRecipient = step{problem.BadInput, "The mail server does not take letters to this address."}
	handingOver     = step{problem.Internal, "The mail server refused the letter."}
)

// failure says in our words why a delivery failed. It is Unavailable if
// another attempt may do better.
func failure(ctx context.Context, at step, err error) *problem.Problem {
	var reply *textproto.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &reply) && reply.Code >= 500,
		errors.Is(err, errNoSTARTTLS), errors.Is(err, errNoAuth), errors.Is(err, errNoSMTPUTF8):
		return &problem.Problem{Code: at.code, Message: at.refused, Cause: err}
	case errors.As(err, &reply):
		return &problem.Problem{Code: problem.Unavailable, Message: "The mail server cannot take letters at the moment.", Cause: err}
	case errors.As(err, &certificate):
		return &problem.Problem{Code: problem.Internal, Message: "The mail server's certificate is not to be trusted.", Cause: err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &problem.Problem{Code: problem.Unavailable, Message: "The mail server took too long.", Cause: err}
	}
	return &problem.Problem{Code: problem.Unavailable, Message: "The mail server does not answer.", Cause: err}
}

func isTemporary(err error) bool { return problem.Of(err).Code == problem.Unavailable }

// enhancedCode is the finer status code in a server's reply.
var enhancedCode = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// cause is what the log may tell of a failure. Of a server's reply that is
// its numbers alone: its words may repeat the address, a link, anything.
func cause(err error) string {
	var reply *textproto.Error
	var garbled textproto.ProtocolError
	switch p := problem.Of(err); {
	case errors.As(err, &reply):
		return strings.TrimSpace(fmt.Sprintf("%d %s", reply.Code, enhancedCode.FindString(reply.Msg)))
	case errors.As(err, &garbled):
		return "the answer is not SMTP"
	case p.Code == problem.BadInput || p.Cause == nil: // its words may repeat the address
		return ""
	default:
		return p.Cause.Error()
	}
}

// giveUp tells of a letter that nobody will get.
func (m *Mailer) giveUp(to string, err error) {
	m.GivenUp.Add(1)
	m.log.Error("a letter is given up", m.about(to, err)...)
}

// about is what the log may know of a letter that failed.
func (m *Mailer) about(to string, err error) []any {
	return []any{"to", masked(to), "why", problem.Of(err).Message, "cause", cause(err)}
}
