package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// checkSettings looks for misspelt variables, which have no effect. The values
// of settings are validated before the doctor runs.
func checkSettings(_ context.Context, cfg *Config, r report) {
	r.addFirst("settings", nil, []outcome{
		{len(cfg.UnknownVariables) > 0, Warning, fmt.Sprintf("Unknown environment variables: %s.", strings.Join(cfg.UnknownVariables, ", ")), "Correct their names; palmares --help lists all settings."},
		{true, OK, "All settings are valid.", ""},
	})
}

// minProxyBits is the shortest prefix of a plausible network of proxies.
const minProxyBits = 8

// checkProxies checks that clients can be distinguished and cannot forge their
// address.
func checkProxies(_ context.Context, cfg *Config, r report) {
	for _, network := range cfg.Proxies {
		if network.Bits() < minProxyBits {
			r.add("proxies", Wrong, fmt.Sprintf("TRUSTED_PROXIES contains %s: almost any client can forge its address and get a new quota with each request.", network),
				"List only the addresses or networks of your proxies.", nil)
			return
		}
	}
	r.addFirst("proxies", nil, []outcome{
		{len(cfg.Proxies) > 0, OK, fmt.Sprintf("X-Forwarded-For is trusted from %d addresses or networks.", len(cfg.Proxies)), ""},
		{!cfg.Private && !cfg.ListensToAll, Wrong, "The server is behind a proxy and TRUSTED_PROXIES is empty: all callers without a key share one quota.", "Set TRUSTED_PROXIES to the proxy's address, such as 127.0.0.1."},
		{!cfg.Private, Warning, "TRUSTED_PROXIES is empty: behind a proxy or CDN, all callers without a key share one quota.", "Set it to the proxy's addresses, or leave it empty if clients connect directly."},
		{true, OK, "TRUSTED_PROXIES is empty: clients connect directly.", ""},
	})
}

// checkPublicURL checks that the public URL leads to a palmares server.
func checkPublicURL(ctx context.Context, cfg *Config, r report) {
	if cfg.PublicURL == "" {
		r.addFirst("public url", nil, []outcome{
			{cfg.ListensToAll, Warning, "PUBLIC_URL is not set: links and examples use localhost.", "Set it to the URL where clients reach the server."},
			{true, OK, "PUBLIC_URL is not set: links use this machine's address.", ""},
		})
		return
	}
	if !cfg.Private && !strings.HasPrefix(cfg.PublicURL, "https://") {
		r.add("public url", Wrong, "PUBLIC_URL does not use https: keys and sessions are sent unencrypted.", "Put a proxy with a certificate in front of the server, and change PUBLIC_URL to https.", nil)
		return
	}
	status, err := Ready(ctx, cfg.PublicURL)
	var certificate *tls.CertificateVerificationError
	r.addFirst("public url", err, []outcome{
		{errors.As(err, &certificate), Wrong, "The certificate at PUBLIC_URL is not trusted or belongs to another host.", "Renew it, or correct PUBLIC_URL."},
		{errors.Is(err, ErrNotPalmares), Warning, "The server at PUBLIC_URL is not palmares.", "Correct PUBLIC_URL, or make the proxy forward all requests."},
		{err != nil, Warning, "PUBLIC_URL is unreachable.", "Start the server and its proxy. If this machine's network differs from your clients', try from elsewhere."},
		{status.Error != "", Warning, "The server at PUBLIC_URL is not ready: " + status.Error + ".", "Fix the other findings first."},
		{true, OK, fmt.Sprintf("The server at PUBLIC_URL is ready, with release %d.", status.Release), ""},
	})
}

// checkServer checks the server that runs on this machine, if any.
func checkServer(ctx context.Context, cfg *Config, r report) {
	address, err := LocalAddress(cfg.Listen)
	if err != nil {
		r.ok("server", "Not checked: PALMARES_LISTEN does not name a fixed port.")
		return
	}
	status, err := Ready(ctx, address)
	r.addFirst("server", nil, []outcome{
		{errors.Is(err, ErrNotPalmares), Wrong, fmt.Sprintf("Another program listens on %s.", cfg.Listen), "Stop it, or change PALMARES_LISTEN."},
		{err != nil, OK, fmt.Sprintf("No server runs on %s.", cfg.Listen), ""},
		{status.Error != "", Wrong, "The server on this machine is not ready: " + status.Error + ".", "Fix the other findings. If there are none, restart the server."},
		{true, OK, fmt.Sprintf("The server on %s is ready, with release %d.", cfg.Listen, status.Release), ""},
	})
}

// Status is the response of /readyz.
type Status struct {
	Status  string `json:"status"`
	Release int    `json:"release"`
	Error   string `json:"error"` // why the server is not ready, on one line
}

// ErrNotPalmares reports that another program responded.
var ErrNotPalmares = errors.New("the server at this address is not palmares")

// probe has a shorter timeout than a check, which can then report it.
var probe = &http.Client{
	Timeout:       4 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ready requests /readyz of the server at a base URL such as
// http://127.0.0.1:8080.
func Ready(ctx context.Context, base string) (status Status, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return status, err
	}
	response, err := probe.Do(request)
	if err != nil {
		return status, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 10_000)).Decode(&status)
	ready := response.StatusCode == http.StatusOK && status.Status == "ready"
	if status.Error = oneLine(status.Error); err != nil || !ready && (response.StatusCode != http.StatusServiceUnavailable || status.Error == "") {
		return status, ErrNotPalmares
	}
	return status, nil
}

// oneLine shortens a server's message to one line without control characters.
func oneLine(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	text = strings.TrimSuffix(strings.Join(words, " "), ".")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// LocalAddress returns the base URL of a server on this machine from its listen
// address.
func LocalAddress(listen string) (base string, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("port 0 is a different port at each start; set a fixed one")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}
