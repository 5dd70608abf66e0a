package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// publicURL sees that readers, and links in letters, come to a palmares.
func publicURL(ctx context.Context, cfg *Config, r *report) {
	if cfg.PublicURL == "" {
		if cfg.ListensToAll {
			r.warn("public url", "PUBLIC_URL is not set: links and examples name localhost.", "Set it to where readers reach the server.", nil)
		} else {
			r.ok("public url", "None is set: this machine's own address is used.")
		}
		return
	}
	if !cfg.Private && !strings.HasPrefix(cfg.PublicURL, "https://") {
		r.wrong("public url", "PUBLIC_URL is public and not https: keys and sessions travel for all to read.", "Put a proxy with a certificate before the server, and write https.", nil)
		return
	}
	status, err := Ready(ctx, cfg.PublicURL)
	var certificate *tls.CertificateVerificationError
	var notReady *NotReady
	const askElsewhere = "If the way from this machine is another than readers take, ask from elsewhere."
	switch {
	case errors.As(err, &certificate):
		r.wrong("public url", "The certificate at PUBLIC_URL is not to be trusted, or is of another name.", "Renew it, or correct PUBLIC_URL.", err)
	case errors.As(err, &notReady) && notReady.Ours:
		r.warn("public url", "The palmares at PUBLIC_URL is not ready: "+notReady.Why+".", "See the other lines.", nil)
	case errors.As(err, &notReady):
		r.warn("public url", "What answers at PUBLIC_URL is no palmares.", "Correct PUBLIC_URL, or let the proxy pass everything on.", nil)
	case err != nil:
		r.warn("public url", "Nobody answers at PUBLIC_URL.", "Start the server and the proxy before it. "+askElsewhere, err)
	default:
		r.ok("public url", "A palmares answers there, with release %d.", status.Release)
	}
}

// server looks at the one that runs here already, if there is one.
func server(ctx context.Context, cfg *Config, r *report) {
	address, err := LocalAddress(cfg.Listen)
	if err != nil {
		r.ok("server", "Which one runs here cannot be told: it would take any port.")
		return
	}
	status, err := Ready(ctx, address)
	var notReady *NotReady
	switch {
	case errors.As(err, &notReady) && notReady.Ours:
		r.wrong("server", "The server that runs here is not ready: "+notReady.Why+".", "See the other lines; if they are well, start it anew.", nil)
	case errors.As(err, &notReady):
		r.wrong("server", fmt.Sprintf("Something else than palmares answers on %s.", cfg.Listen), "End it, or set PALMARES_LISTEN to another address.", nil)
	case err != nil:
		r.ok("server", "None runs on %s at the moment.", cfg.Listen)
	default:
		r.ok("server", "The one on %s is ready, with release %d.", cfg.Listen, status.Release)
	}
}

// asking waits less than a check does, so that it can still say so.
var asking = &http.Client{
	Timeout:       4 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
