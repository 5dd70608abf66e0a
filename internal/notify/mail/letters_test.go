package mail

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const planURL = "https://palmares.example/account/plan"

func TestLetters(t *testing.T) {
	until := time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		msg        Message
		subject    string
		link, code string
		says       []string
	}{
		"sign in": {SignIn(ana, "palmares", link, code), "Your sign-in code for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this letter"}},
		"change address": {ChangeAddress(ana, "palmares", link, code), "Confirm your new address for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this letter", "confirm"}},
		"address changed": {AddressChanged(ana, "palmares", "bea@example.org"), "Your address for palmares was changed", "", "",
			[]string{"b…@example.org", "no longer signs in to it"}},
		"account deleted": {AccountDeleted(ana, "palmares"), "Your account of palmares was deleted", "", "",
			[]string{"was deleted", "keys have ended", "write to us at once"}},
		"payment failed": {PaymentFailed(ana, "palmares", planURL, until), "Your payment for palmares failed", planURL, "",
			[]string{"Pro goes on until", "9 March 2026"}},
		"Pro ended": {ProEnded(ana, "palmares", planURL), "Your Pro plan of palmares has ended", planURL, "",
			[]string{"Developer", "3 oldest keys", "suspended", "subscribe again"}},
	} {
		t.Run(name, func(t *testing.T) {
			msg := test.msg
			if msg.To != ana || msg.Subject != test.subject || msg.Link != test.link || msg.Code != test.code {
				t.Errorf("%+v", msg)
			}
			html := strings.ReplaceAll(msg.HTML, "&amp;", "&")
			for _, want := range append(test.says, "palmares", test.link, test.code) {
				if !strings.Contains(msg.Text, want) || !strings.Contains(html, want) {
					t.Errorf("%q is missing in\n%s\n%s", want, msg.Text, html)
				}
			}
			if test.link != "" && (!strings.Contains(html, `href="`+test.link+`"`) || !strings.Contains(html, ">"+test.link+"</a>")) {
				t.Errorf("the link is not there twice:\n%s", html)
			}
			if strings.Contains(msg.Text+html, "bea@") || strings.Contains(msg.Text, "<") || strings.Contains(html, "ZgotmplZ") {
				t.Errorf("%s\n%s", msg.Text, html)
			}
		})
	}
}

// Whatever somebody gives is text in a letter, and nothing else.
func TestLettersEscape(t *testing.T) {
	const evil = "<script>alert(1)</script>\r\n\"><img src=x onerror=y>"
	tags := regexp.MustCompile(`(?i)<script|<img|href="javascript`)
	for _, msg := range []Message{
		SignIn(ana, evil, "javascript:alert(1)", evil), ChangeAddress(ana, evil, evil, evil), AddressChanged(ana, evil, "a@"+evil),
		AccountDeleted(ana, evil), PaymentFailed(ana, evil, evil, time.Now()), ProEnded(ana, evil, "javascript:alert(1)"),
	} {
		if found := tags.FindString(msg.HTML); found != "" {
			t.Errorf("%s in\n%s", found, msg.HTML)
		}
		if strings.ContainsAny(msg.Subject, "\r\n") {
			t.Errorf("the subject is %q", msg.Subject)
		}
	}
}
