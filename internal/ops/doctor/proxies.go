package doctor

import (
	"context"
	"fmt"
)

// widest is how many bits a network of proxies has at least: whoever is in it
// may say that a request comes from anybody.
const widest = 8

// proxies sees that callers are told apart, and cannot say who they are
// themselves.
func proxies(_ context.Context, cfg *Config, r *report) {
	for _, network := range cfg.Proxies {
		if network.Bits() < widest {
			r.wrong("proxies", fmt.Sprintf("TRUSTED_PROXIES has %s, in which nearly anybody may claim any address, and have a new quota each time.", network),
				"Name the proxies' own addresses or networks.", nil)
			return
		}
	}
	switch {
	case len(cfg.Proxies) > 0:
		r.ok("proxies", "X-Forwarded-For counts where one of %d addresses or networks sends it.", len(cfg.Proxies))
	case !cfg.Private && !cfg.ListensToAll:
		r.wrong("proxies", "A proxy stands before this server, and TRUSTED_PROXIES is empty: all callers without a key share one quota.",
			"Set TRUSTED_PROXIES to the proxy's address, such as 127.0.0.1.", nil)
	case !cfg.Private:
		r.warn("proxies", "TRUSTED_PROXIES is empty: if a proxy or a CDN stands before this server, all callers without a key share one quota.",
			"Set it to the proxy's addresses; leave it empty if callers connect directly.", nil)
	default:
		r.ok("proxies", "None is set: callers are who connects.")
	}
}
