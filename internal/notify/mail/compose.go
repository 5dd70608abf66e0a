package mail

import (
	"bytes"
	"crypto/rand"
	"net/mail"
	"strings"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"palmares/internal/core/problem"
)

// letter is a message as it goes over the wire. Every attempt sends the same:
// its Message-ID is how a letter that arrives twice is known.
type letter struct {
	to    string
	raw   []byte
	tries int // that failed
}

func (m *Mailer) compose(msg Message) (*letter, error) {
	to, err := recipient(msg.To)
	if err != nil {
		return nil, &problem.Problem{Code: problem.BadInput, Message: "This is not a mail address.", Cause: err}
	}
	if m.Prints() {
		return &letter{to: to}, nil
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
		return nil, &problem.Problem{Code: problem.Internal, Message: "The letter could not be written.", Cause: err}
	}
	return &letter{to: to, raw: raw.Bytes()}, nil
}

// oneLine makes spaces of line breaks and their like, which would be headers.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}
