package info

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"palmares/internal/core/lang"
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
	required bool // of every publisher
}

func (f *Facts) all() []fact {
	return []fact{
		{"publisher-name", &f.Publisher, true}, {"publisher-address", &f.Address, true}, {"publisher-phone", &f.Phone, true},
		{"publisher-registration", &f.Registration, false}, {"publisher-capital", &f.Capital, false}, {"publisher-vat", &f.VAT, false},
		{"publication-director", &f.Director, true},
		{"hosting-name", &f.Host, true}, {"hosting-address", &f.HostAddress, true}, {"hosting-phone", &f.HostPhone, true},
		{"security-contact", &f.SecurityContact, false}, {"security-expires", &f.SecurityExpires, false},
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
	if err := facts.checkSecurity(); err != nil {
		return facts, fmt.Errorf("%s: %w", path, err)
	}
	return facts, nil
}

// specialCharacters are those that Markdown could take for markup.
var specialCharacters = regexp.MustCompile("[\\\\`*_\\[\\]<>#|~!]")

// facts returns the list of the facts that are known.
func (p *Pages) facts(l lang.Language) string {
	var list strings.Builder
	add := func(name lang.Message, values ...string) {
		known := slices.DeleteFunc(values, func(value string) bool { return value == "" })
		if len(known) > 0 {
			list.WriteString("- " + l.Text("**%s:** %s", l.Text(name), strings.Join(known, ", ")) + "\n")
		}
	}
	text := func(value string) string {
		if l == lang.French {
			value = lang.Typeset(value)
		}
		return specialCharacters.ReplaceAllString(value, `\$0`)
	}
	phone := func(number string) string { return strings.ReplaceAll(text(number), " ", "\u00a0") } // on one line
	f := p.Facts
	add("Publisher", text(f.Publisher), text(f.Address), phone(f.Phone))
	add("Registration", text(f.Registration))
	add("Share capital", text(f.Capital))
	add("VAT number", text(f.VAT))
	add("Director of publication", text(f.Director))
	add("Hosting company", text(f.Host), text(f.HostAddress), phone(f.HostPhone))
	if p.Contact != "" {
		add("Contact", p.contact(l))
	}
	switch {
	case p.Demo:
		return "**" + l.Text("This is a demo: the people and companies in this list do not exist.") + "**\n\n" + strings.TrimSpace(list.String())
	case list.Len() == 0:
		return l.Text("The operator of this server has not provided these details yet.")
	}
	return strings.TrimSpace(list.String())
}
