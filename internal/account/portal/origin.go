package portal

import (
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// origin is where an address is, as browsers write it: in lower case and
// ASCII, without the port that its scheme has anyway.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host
}
