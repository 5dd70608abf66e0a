package prose

import (
	"fmt"
	"maps"
	"net/http"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

// Facts say who publishes and who hosts the site. French law (LCEN, article 1-1)
// requires them: name, address and phone number of the publisher, the director of
// publication, and name, address and phone number of the host. Publishers that
// have a registration, capital or VAT number state them too.
type Facts struct {
	Publisher, Address, Phone  string
	Registration, Capital, VAT string
	Director                   string
	Host, HostAddress          string
	HostPhone                  string

	SecurityContact, SecurityExpires string // for SecurityPath
}

// DemoFacts are the facts of the demo, whose publisher does not exist.
var DemoFacts = Facts{
	Publisher: "Palmarès Démo SAS", Address: "1 rue de l’Exemple, 75000 Paris, France", Phone: "+33 1 99 00 00 00",
	Registration: "RCS Paris 000 000 000", Capital: "1\u00a0000 €", VAT: "FR00000000000", Director: "Camille Exemple",
	Host: "Hébergeur Démo", HostAddress: "2 rue de l’Exemple, 75000 Paris, France", HostPhone: "+33 1 99 00 00 01",
	SecurityContact: "security@demo.example", // it expires half a year after the server starts
}

// factsFile is the name of the operator's file with the facts.
const factsFile = "facts.yml"

// fact is one of the facts, with its key in the operator's file.
type fact struct {
	key      string
	value    *string
	required bool         // of every publisher
	label    lang.Message // on the About page, which joins successive facts with the same one; "" for those that are not on it
}

func (f *Facts) all() []fact {
	return []fact{
		{"publisher-name", &f.Publisher, true, "Publisher"}, {"publisher-address", &f.Address, true, "Publisher"}, {"publisher-phone", &f.Phone, true, "Publisher"},
		{"publisher-registration", &f.Registration, false, "Registration"}, {"publisher-capital", &f.Capital, false, "Share capital"},
		{"publisher-vat", &f.VAT, false, "VAT number"}, {"publication-director", &f.Director, true, "Director of publication"},
		{"hosting-name", &f.Host, true, "Hosting company"}, {"hosting-address", &f.HostAddress, true, "Hosting company"}, {"hosting-phone", &f.HostPhone, true, "Hosting company"},
		{"security-contact", &f.SecurityContact, false, ""}, {"security-expires", &f.SecurityExpires, false, ""},
	}
}

// Missing returns the keys of the facts that the About page lacks. Which of the others
// apply depends on the publisher.
func (f Facts) Missing() (keys []string) {
	for _, fact := range f.all() {
		if fact.required && *fact.value == "" {
			keys = append(keys, fact.key)
		}
	}
	return keys
}

// ReadFacts reads the facts in the operator's folder. There are none without a folder or
// without the file.
func ReadFacts(folder string) (facts Facts, err error) {
	own, err := readFolder(folder)
	if err != nil {
		return facts, err
	}
	path := filepath.Join(folder, factsFile)
	var values map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(own[factsFile]), &values); err != nil {
		return facts, fmt.Errorf("%s: the file must have lines such as \"publisher-name: NAME\": %w", path, err)
	}
	known, keys := map[string]*string{}, []string{}
	for _, fact := range facts.all() {
		known[fact.key], keys = fact.value, append(keys, fact.key)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		switch {
		case known[key] == nil:
			return facts, fmt.Errorf("%s: %s: no fact has this name; use one of %s", path, key, strings.Join(keys, ", "))
		case value.Kind != yaml.ScalarNode || strings.ContainsFunc(value.Value, unicode.IsControl):
			return facts, fmt.Errorf("%s: %s: must be text on one line", path, key)
		case value.Tag != "!!null": // a key without a value
			*known[key] = strings.TrimSpace(value.Value)
		}
	}
	if facts.SecurityContact != "" && securityURL(facts.SecurityContact) == "" {
		return facts, fmt.Errorf("%s: security-contact: must be an email address or an https URL (got %q)", path, facts.SecurityContact)
	}
	if _, err := time.Parse(time.DateOnly, facts.SecurityExpires); facts.SecurityExpires != "" && err != nil {
		return facts, fmt.Errorf("%s: security-expires: must have the form 2027-06-30 (got %q)", path, facts.SecurityExpires)
	}
	return facts, nil
}

// specialCharacters are those that Markdown could take for markup.
var specialCharacters = regexp.MustCompile("[\\\\`*_\\[\\]<>#|~!]")

// facts returns the list of the facts that are known.
func (p *Pages) facts(l lang.Language) string {
	var list []string
	var label lang.Message
	for _, fact := range p.Facts.all() {
		text := *fact.value
		if fact.label == "" || text == "" {
			continue
		}
		if l == lang.French {
			text = lang.Typeset(text)
		}
		if amount, ok := strings.CutSuffix(strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "").Replace(text), "€"); ok && fact.value == &p.Facts.Capital {
			if euros, err := strconv.ParseFloat(amount, 64); err == nil {
				text = l.Euros(euros)
			}
		}
		if strings.HasSuffix(fact.key, "-phone") {
			text = strings.ReplaceAll(text, " ", "\u00a0") // on one line
		}
		text = specialCharacters.ReplaceAllString(text, `\$0`)
		if fact.label == label {
			list[len(list)-1] += ", " + text
			continue
		}
		label, list = fact.label, append(list, "- "+l.Text("**%s:** %s", l.Text(fact.label), text))
	}
	if p.Contact != "" {
		list = append(list, "- "+l.Text("**%s:** %s", l.Text("Contact"), p.contact(l)))
	}
	switch {
	case p.Demo:
		return "**" + l.Text("This is a demo: the people and companies in this list do not exist.") + "**\n\n" + strings.Join(list, "\n")
	case list == nil:
		return l.Text("The operator of this server has not provided these details yet.")
	}
	return strings.Join(list, "\n")
}

// SecurityPath is the path of the file that says where to report vulnerabilities (RFC
// 9116).
const SecurityPath = "/.well-known/security.txt"

// securityNotice is how long before the file expires its publisher is warned.
const securityNotice = 30 * 24 * time.Hour

// SecurityProblem returns what is wrong with the facts for SecurityPath, or "".
func (f Facts) SecurityProblem(now time.Time) string {
	expires, err := time.Parse(time.DateOnly, f.SecurityExpires)
	switch {
	case f.SecurityContact == "" || err != nil:
		return "There is no " + SecurityPath + ", because security-contact or security-expires is missing."
	case !now.Before(expires):
		return SecurityPath + " expired on " + f.SecurityExpires + ", so researchers ignore it."
	case expires.Sub(now) < securityNotice:
		return SecurityPath + " expires on " + f.SecurityExpires + "."
	}
	return ""
}

// securityURL returns a contact as a URL, or "" if it is neither an email address nor an
// https URL.
func securityURL(contact string) string {
	if u, err := url.Parse(contact); err == nil && u.Scheme == "https" && u.Host != "" {
		return u.String()
	}
	address, err := mail.ParseAddress(contact)
	if err != nil || address.Address != contact {
		return ""
	}
	return (&url.URL{Scheme: "mailto", Opaque: url.PathEscape(contact)}).String()
}

// Security serves SecurityPath, or is nil without the facts for it.
func (p *Pages) Security() http.Handler {
	f := p.Facts
	if f.SecurityContact == "" || f.SecurityExpires == "" {
		return nil
	}
	return page.Handler(textEntry("text/plain; charset=utf-8", fmt.Sprintf("Contact: %s\nExpires: %sT00:00:00Z\nPreferred-Languages: en, fr\nCanonical: %s\nPolicy: %s/en/contact\n",
		securityURL(f.SecurityContact), f.SecurityExpires, p.PublicURL+SecurityPath, p.PublicURL)).Write)
}
