package mail

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const planURL = "https://palmares.example/account/plan"

func TestTemplates(t *testing.T) {
	until := time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		msg        Message
		subject    string
		link, code string
		contains   []string
	}{
		"sign in": {SignIn(ana, "palmares", link, code), "Your sign-in code for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email"}},
		"change address": {ConfirmEmail(ana, "palmares", link, code), "Confirm your new email address for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email", "confirm"}},
		"address changed": {EmailChanged(ana, "palmares", "bea@example.org"), "Your palmares email address was changed", "", "",
			[]string{"b…@example.org", "no longer sign in with this address"}},
		"account deleted": {AccountDeleted(ana, "palmares"), "Your palmares account was deleted", "", "",
			[]string{"was deleted", "keys were revoked", "reply to this email right away"}},
		"payment failed": {PaymentFailed(ana, "palmares", planURL, until), "Your payment for palmares Pro failed", planURL, "",
			[]string{"keep using Pro until", "9 March 2026"}},
		"Pro ended": {ProEnded(ana, "palmares", planURL), "Your palmares Pro plan has ended", planURL, "",
			[]string{"Developer", "3 oldest API keys", "suspended", "subscribe again"}},
		"query broken": {QueryBroken(ana, "palmares", "best-tools", "Line 1: there is no such field", planURL), "Your saved query best-tools is no longer valid", planURL, "",
			[]string{"best-tools", "Reason: Line 1: there is no such field", "410"}},
		"webhook disabled": {WebhookDisabled(ana, "palmares", "https://hooks.example", "it is slow", planURL), "A palmares webhook endpoint was disabled", planURL, "",
			[]string{"https://hooks.example", "Reason: it is slow.", "resend"}},
	} {
		t.Run(name, func(t *testing.T) {
			msg := test.msg
			if msg.To != ana || msg.Subject != test.subject || msg.Link != test.link || msg.Code != test.code {
				t.Errorf("got %+v, want subject %q, link %q and code %q", msg, test.subject, test.link, test.code)
			}
			html := strings.ReplaceAll(msg.HTML, "&amp;", "&")
			for _, want := range append(test.contains, "palmares", test.link, test.code) {
				if !strings.Contains(msg.Text, want) || !strings.Contains(html, want) {
					t.Errorf("got no %q, want it in both\n%s\n%s", want, msg.Text, html)
				}
			}
			if test.link != "" && (!strings.Contains(html, `href="`+test.link+`"`) || !strings.Contains(html, ">"+test.link+"</a>")) {
				t.Errorf("got no link, want a button and its URL:\n%s", html)
			}
			if strings.Contains(msg.Text+html, "bea@") || strings.Contains(msg.Text, "<") || strings.Contains(html, "ZgotmplZ") {
				t.Errorf("got\n%s\n%s\nwant a masked address and escaped HTML", msg.Text, html)
			}
		})
	}
}

// User input must not add HTML or headers to an email.
func TestTemplatesEscape(t *testing.T) {
	const evil = "<script>alert(1)</script>\r\n\"><img src=x onerror=y>"
	tags := regexp.MustCompile(`(?i)<script|<img|href="javascript`)
	for _, msg := range []Message{
		SignIn(ana, evil, "javascript:alert(1)", evil), ConfirmEmail(ana, evil, evil, evil), EmailChanged(ana, evil, "a@"+evil),
		AccountDeleted(ana, evil), WebhookDisabled(ana, evil, evil, evil, evil), PaymentFailed(ana, evil, evil, time.Now()), ProEnded(ana, evil, "javascript:alert(1)"),
	} {
		if found := tags.FindString(msg.HTML); found != "" {
			t.Errorf("got %s, want it escaped:\n%s", found, msg.HTML)
		}
		if strings.ContainsAny(msg.Subject, "\r\n") {
			t.Errorf("got subject %q, want one line", msg.Subject)
		}
	}
}
