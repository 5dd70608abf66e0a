package mail

import (
	"crypto/tls"
	"errors"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// server is the mail server that takes our letters.
type server struct {
	host, port     string
	user, password string
	implicitTLS    bool // from the first byte, without STARTTLS
	loopback       bool // it may do without STARTTLS
	tls            *tls.Config
}

// CheckURL tells whether an address of a mail server can be used at all. It
// never repeats the address, which holds a password.
func CheckURL(address string) error {
	if address == "" { // letters are printed
		return nil
	}
	_, err := parseServer(address, nil)
	return err
}

// CheckFrom tells whether letters can be sent from an address.
func CheckFrom(address string) error {
	_, err := parseFrom(address)
	return err
}

var defaultPorts = map[string]string{"smtp": "587", "smtps": "465"}

func parseServer(address string, config *tls.Config) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || defaultPorts[u.Scheme] == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("is not of the form smtp://user:password@host:587 or smtps://user:password@host:465; " +
			"in a user and a password, signs other than letters and digits are written as in %2F")
	}
	s := &server{host: u.Hostname(), port: u.Port(), implicitTLS: u.Scheme == "smtps", loopback: isLoopback(u.Hostname())}
	if s.port == "" {
		s.port = defaultPorts[u.Scheme]
	}
	if port, err := strconv.ParseUint(s.port, 10, 16); err != nil || port == 0 {
		return nil, errors.New("has a port that is not between 1 and 65535")
	}
	if u.User != nil {
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		if s.user == "" || s.password == "" {
			return nil, errors.New("has a user without a password, or a password without a user")
		}
	}
	s.tls = s.tlsConfig(config)
	return s, nil
}

func (s *server) tlsConfig(config *tls.Config) *tls.Config {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
		// A relay on this machine mostly has a certificate that it made
		// itself. Without a password there is nobody to prove anything to.
		config.InsecureSkipVerify = s.loopback && s.user == ""
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = s.host
	}
	return config
}

// isLoopback does not ask the DNS, whom others may answer for.
func isLoopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

func parseFrom(address string) (*mail.Address, error) {
	from, err := mail.ParseAddress(address)
	if err != nil || strings.ContainsFunc(address, unicode.IsControl) {
		return nil, errors.New("is not of the form name@example.com or Name <name@example.com>")
	}
	// A server need not take any other, and who answers must be able to.
	if to, err := recipient(from.Address); err != nil || to != from.Address || !isASCII(to) {
		return nil, errors.New("has an address with signs that not every mail server takes")
	}
	return from, nil
}

// recipient is a plain address in the form that mail servers take: a domain of
// letters beyond ASCII has another name for them.
func recipient(address string) (string, error) {
	parsed, err := mail.ParseAddress(address)
	if err != nil {
		return "", err
	}
	if parsed.Address != address || strings.ContainsFunc(address, unicode.IsControl) { // a name, quotes or comments
		return "", errors.New("it is more than an address")
	}
	at := strings.LastIndexByte(address, '@')
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", err
	}
	return address[:at+1] + domain, nil
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// masked is an address as others may see it, such as a…@example.com.
func masked(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return "…"
	}
	_, size := utf8.DecodeRuneInString(address)
	return address[:size] + "…" + address[at:]
}
