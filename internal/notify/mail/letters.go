package mail

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"
)

//go:embed letters
var letterFiles embed.FS

// form is the two bodies of a kind of letter.
type form struct {
	text *texttemplate.Template
	html *template.Template
}

func parseForm(name string) form {
	return form{
		text: texttemplate.Must(texttemplate.ParseFS(letterFiles, "letters/"+name+".txt")),
		html: template.Must(template.ParseFS(letterFiles, "letters/frame.html", "letters/"+name+".html")),
	}
}

var (
	signIn         = parseForm("signin")
	changeAddress  = parseForm("changeaddress")
	addressChanged = parseForm("addresschanged")
	accountDeleted = parseForm("accountdeleted")
	paymentFailed  = parseForm("paymentfailed")
	proEnded       = parseForm("proended")
	hookDisabled   = parseForm("webhookdisabled")
)

// content is what the letters' forms may name.
type content struct {
	Service, Link, Code, NewAddress, Until string
	Endpoint, Why                          string
}

func (f form) write(to, subject string, c content) Message {
	c.Service, c.NewAddress, c.Endpoint = oneLine(c.Service), oneLine(c.NewAddress), oneLine(c.Endpoint)
	var text, html strings.Builder
	if err := f.text.Execute(&text, c); err != nil {
		panic(fmt.Sprintf("a letter's form is wrong: %v", err)) // the tests write each
	}
	if err := f.html.ExecuteTemplate(&html, "frame.html", c); err != nil {
		panic(fmt.Sprintf("a letter's form is wrong: %v", err))
	}
	return Message{To: to, Subject: oneLine(subject), Text: text.String(), HTML: html.String(), Link: c.Link, Code: c.Code}
}

// SignIn brings a code and a link to sign in with.
func SignIn(to, service, link, code string) Message {
	return signIn.write(to, "Your sign-in code for "+service, content{Service: service, Link: link, Code: code})
}

// ChangeAddress asks the new address to prove itself.
func ChangeAddress(to, service, link, code string) Message {
	return changeAddress.write(to, "Confirm your new address for "+service, content{Service: service, Link: link, Code: code})
}

// AddressChanged tells the old address where letters go now.
func AddressChanged(to, service, newAddress string) Message {
	return addressChanged.write(to, "Your address for "+service+" was changed", content{Service: service, NewAddress: masked(newAddress)})
}

// AccountDeleted tells an owner that there is nothing left to sign in to.
func AccountDeleted(to, service string) Message {
	return accountDeleted.write(to, "Your account of "+service+" was deleted", content{Service: service})
}

// PaymentFailed tells until when Pro goes on without a payment.
func PaymentFailed(to, service, planURL string, until time.Time) Message {
	return paymentFailed.write(to, "Your payment for "+service+" failed",
		content{Service: service, Link: planURL, Until: until.UTC().Format("2 January 2006")})
}

// ProEnded tells what is left without Pro.
func ProEnded(to, service, planURL string) Message {
	return proEnded.write(to, "Your Pro plan of "+service+" has ended", content{Service: service, Link: planURL})
}

// WebhookDisabled tells that events are no longer sent to an endpoint, and why.
func WebhookDisabled(to, service, endpoint, why, pageURL string) Message {
	return hookDisabled.write(to, "A webhook of "+service+" was disabled", content{Service: service, Endpoint: endpoint, Why: why, Link: pageURL})
}
