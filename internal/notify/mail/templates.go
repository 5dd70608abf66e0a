package mail

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"palmares/internal/core/lang"
)

//go:embed templates
var templateFiles embed.FS

// values are what templates can refer to.
type values struct {
	Language                               lang.Language
	Service, Link, Code, NewAddress, Until string
	Endpoint, Reason                       string
}

// render writes both bodies of an email from its template, in the language of its
// values. The layouts define what paragraphs, codes and links look like.
func render(name, to, subject string, v values) Message {
	v.Service, v.NewAddress, v.Endpoint = oneLine(v.Service), oneLine(v.NewAddress), oneLine(v.Endpoint)
	functions := map[string]any{"t": func(m string, args ...any) string { return v.Language.Text(lang.Message(m), args...) }}
	file := "templates/" + name + ".txt"
	textBody := texttemplate.Must(texttemplate.New("layout.txt").Funcs(functions).ParseFS(templateFiles, "templates/layout.txt", file))
	htmlBody := template.Must(template.New("layout.html").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", file))
	var text, html strings.Builder
	if err := errors.Join(textBody.Execute(&text, v), htmlBody.Execute(&html, v)); err != nil {
		panic(fmt.Sprintf("email template: %v", err)) // the tests render every template
	}
	return Message{To: to, Subject: oneLine(subject), Text: text.String(), HTML: html.String(), Link: v.Link, Code: v.Code}
}

// SignIn returns the email with a code and a link to sign in.
func SignIn(l lang.Language, to, service, link, code string) Message {
	return render("sign-in", to, l.Text("Your sign-in code for %s", service), values{Language: l, Service: service, Link: link, Code: code})
}

// ConfirmEmail returns the email that confirms an account's new address.
func ConfirmEmail(l lang.Language, to, service, link, code string) Message {
	return render("confirm-email", to, l.Text("Confirm your new email address for %s", service), values{Language: l, Service: service, Link: link, Code: code})
}

// EmailChanged returns the email that notifies the previous address of a change.
func EmailChanged(l lang.Language, to, service, newAddress string) Message {
	return render("email-changed", to, l.Text("Your %s email address was changed", service), values{Language: l, Service: service, NewAddress: masked(newAddress)})
}

// AccountDeleted returns the email that confirms the deletion of an account.
func AccountDeleted(l lang.Language, to, service string) Message {
	return render("account-deleted", to, l.Text("Your %s account was deleted", service), values{Language: l, Service: service})
}

// PaymentFailed returns the email about a failed payment, with the end of Pro.
func PaymentFailed(l lang.Language, to, service, planURL string, until time.Time) Message {
	return render("payment-failed", to, l.Text("Your payment for %s Pro failed", service), values{Language: l, Service: service, Link: planURL, Until: strings.ReplaceAll(l.Day(until), "\u00a0", " ")}) // readable in the source of an email
}

// ProEnded returns the email about the end of a Pro plan.
func ProEnded(l lang.Language, to, service, planURL string) Message {
	return render("pro-ended", to, l.Text("Your %s Pro plan has ended", service), values{Language: l, Service: service, Link: planURL})
}

// QueryBroken returns the email about a saved query that is no longer valid.
func QueryBroken(l lang.Language, to, service, name, reason, pageURL string) Message {
	return render("query-broken", to, l.Text("Your saved query %s is no longer valid", name), values{Language: l, Service: service, Endpoint: name, Reason: reason, Link: pageURL})
}

// WebhookDisabled returns the email about a disabled endpoint.
func WebhookDisabled(l lang.Language, to, service, endpoint, reason, pageURL string) Message {
	return render("webhook-disabled", to, l.Text("A %s webhook endpoint was disabled", service), values{Language: l, Service: service, Endpoint: endpoint, Reason: reason, Link: pageURL})
}
