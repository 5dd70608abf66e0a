package mail

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"
)

//go:embed templates
var templateFiles embed.FS

// values are what templates can refer to.
type values struct {
	Service, Link, Code, NewAddress, Until string
	Endpoint, Reason                       string
}

// render writes both bodies of an email from its templates.
func render(name, to, subject string, v values) Message {
	v.Service, v.NewAddress, v.Endpoint = oneLine(v.Service), oneLine(v.NewAddress), oneLine(v.Endpoint)
	textBody := texttemplate.Must(texttemplate.ParseFS(templateFiles, "templates/"+name+".txt"))
	htmlBody := template.Must(template.ParseFS(templateFiles, "templates/layout.html", "templates/"+name+".html"))
	var text, html strings.Builder
	if err := errors.Join(textBody.Execute(&text, v), htmlBody.Execute(&html, v)); err != nil {
		panic(fmt.Sprintf("email template: %v", err)) // the tests render every template
	}
	return Message{To: to, Subject: oneLine(subject), Text: text.String(), HTML: html.String(), Link: v.Link, Code: v.Code}
}

// SignIn returns the email with a code and a link to sign in.
func SignIn(to, service, link, code string) Message {
	return render("sign-in", to, "Your sign-in code for "+service, values{Service: service, Link: link, Code: code})
}

// ConfirmEmail returns the email that confirms an account's new address.
func ConfirmEmail(to, service, link, code string) Message {
	return render("confirm-email", to, "Confirm your new email address for "+service, values{Service: service, Link: link, Code: code})
}

// EmailChanged returns the email that notifies the previous address of a change.
func EmailChanged(to, service, newAddress string) Message {
	return render("email-changed", to, "Your "+service+" email address was changed", values{Service: service, NewAddress: masked(newAddress)})
}

// AccountDeleted returns the email that confirms the deletion of an account.
func AccountDeleted(to, service string) Message {
	return render("account-deleted", to, "Your "+service+" account was deleted", values{Service: service})
}

// PaymentFailed returns the email about a failed payment, with the end of Pro.
func PaymentFailed(to, service, planURL string, until time.Time) Message {
	return render("payment-failed", to, "Your payment for "+service+" Pro failed",
		values{Service: service, Link: planURL, Until: until.UTC().Format("2 January 2006")})
}

// ProEnded returns the email about the end of a Pro plan.
func ProEnded(to, service, planURL string) Message {
	return render("pro-ended", to, "Your "+service+" Pro plan has ended", values{Service: service, Link: planURL})
}

// QueryBroken returns the email about a saved query that is no longer valid.
func QueryBroken(to, service, name, reason, pageURL string) Message {
	return render("query-broken", to, "Your saved query "+name+" is no longer valid", values{Service: service, Endpoint: name, Reason: reason, Link: pageURL})
}

// WebhookDisabled returns the email about a disabled endpoint.
func WebhookDisabled(to, service, endpoint, reason, pageURL string) Message {
	return render("webhook-disabled", to, "A "+service+" webhook endpoint was disabled", values{Service: service, Endpoint: endpoint, Reason: reason, Link: pageURL})
}
