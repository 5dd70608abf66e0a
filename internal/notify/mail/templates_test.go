package mail

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
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
		"sign in": {SignIn(lang.English, ana, "palmares", link, code), "Your sign-in code for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email"}},
		"change address": {ConfirmEmail(lang.English, ana, "palmares", link, code), "Confirm your new email address for palmares", link, code,
			[]string{"15 minutes", "once", "ignore this email", "confirm"}},
		"address changed": {EmailChanged(lang.English, ana, "palmares", "bea@example.org"), "Your palmares email address was changed", "", "",
			[]string{"b…@example.org", "no longer sign in with this address"}},
		"account deleted": {AccountDeleted(lang.English, ana, "palmares"), "Your palmares account was deleted", "", "",
			[]string{"was deleted", "keys were revoked", "reply to this email right away"}},
		"payment failed": {PaymentFailed(lang.English, ana, "palmares", planURL, until), "Your payment for palmares Pro failed", planURL, "",
			[]string{"keep using Pro until", "9 March 2026"}},
		"Pro ended": {ProEnded(lang.English, ana, "palmares", planURL), "Your palmares Pro plan has ended", planURL, "",
			[]string{"Developer", "3 oldest API keys", "suspended", "subscribe again"}},
		"query broken": {QueryBroken(lang.English, ana, "palmares", "best-tools", "Line 1: there is no such field", planURL), "Your saved query best-tools is no longer valid", planURL, "",
			[]string{"best-tools", "Reason: Line 1: there is no such field", "410"}},
		"webhook disabled": {WebhookDisabled(lang.English, ana, "palmares", "https://hooks.example", "it is slow", planURL), "A palmares webhook endpoint was disabled", planURL, "",
			[]string{"https://hooks.example", "Reason: it is slow.", "resend"}},
	} {
		t.Run(name, func(t *testing.T) {
			msg := test.msg
			check.Equal(t, msg.To, ana)
			check.Equal(t, msg.Subject, test.subject)
			check.Equal(t, msg.Link, test.link)
			check.Equal(t, msg.Code, test.code)
			html := strings.ReplaceAll(msg.HTML, "&amp;", "&")
			for _, want := range append(test.contains, "palmares", test.link, test.code) {
				check.Contains(t, msg.Text, want)
				check.Contains(t, html, want)
			}
			if test.link != "" && (!strings.Contains(html, `href="`+test.link+`"`) || !strings.Contains(html, ">"+test.link+"</a>")) {
				t.Errorf("got no link, want a button and its URL:\n%s", html)
			}
			check.Lacks(t, msg.Text+html, "bea@")
			check.Lacks(t, msg.Text, "<")
			check.Lacks(t, html, "ZgotmplZ")
		})
	}
}

func TestTemplatesInFrench(t *testing.T) {
	until := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		msg            Message
		subject, wants string
	}{
		{SignIn(lang.French, ana, "palmares", link, code), "Votre code de connexion à palmares", "15 minutes"},
		{ConfirmEmail(lang.French, ana, "palmares", link, code), "Confirmez votre nouvelle adresse e-mail pour palmares", "saisissez ce code"},
		{EmailChanged(lang.French, ana, "palmares", "bea@example.org"), "Votre adresse e-mail pour palmares a été modifiée", "b…@example.org"},
		{AccountDeleted(lang.French, ana, "palmares"), "Votre compte palmares a été supprimé", "révoquées"},
		{PaymentFailed(lang.French, ana, "palmares", planURL, until), "Le paiement de palmares Pro a échoué", "1er mars 2026"},
		{ProEnded(lang.French, ana, "palmares", planURL), "Votre formule palmares Pro a pris fin", "suspendues"},
		{QueryBroken(lang.French, ana, "palmares", "best-tools", "x", planURL), "Votre requête enregistrée best-tools n’est plus valide", "410"},
		{WebhookDisabled(lang.French, ana, "palmares", "https://hooks.example", "x", planURL), "Un endpoint de webhook palmares a été désactivé", "https://hooks.example"},
	} {
		check.Equal(t, test.msg.Subject, test.subject)
		check.Contains(t, test.msg.HTML, `<html lang="fr">`)
		for _, body := range []string{test.msg.Text, test.msg.HTML} {
			check.Contains(t, body, "Bonjour,")
			check.Contains(t, body, test.wants)
			check.Lacks(t, body, "Hello")
		}
	}
}

// User input must not add HTML or headers to an email.
func TestTemplatesEscape(t *testing.T) {
	const evil = "<script>alert(1)</script>\r\n\"><img src=x onerror=y>"
	tags := regexp.MustCompile(`(?i)<script|<img|href="javascript`)
	for _, msg := range []Message{
		SignIn(lang.English, ana, evil, "javascript:alert(1)", evil), ConfirmEmail(lang.English, ana, evil, evil, evil), EmailChanged(lang.English, ana, evil, "a@"+evil),
		AccountDeleted(lang.English, ana, evil), WebhookDisabled(lang.English, ana, evil, evil, evil, evil), PaymentFailed(lang.English, ana, evil, evil, time.Now()), ProEnded(lang.English, ana, evil, "javascript:alert(1)"),
	} {
		check.Equal(t, tags.FindString(msg.HTML), "")
		check.True(t, !strings.ContainsAny(msg.Subject, "\r\n"), "got subject %q, want one line", msg.Subject)
	}
}
