package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %s", address, listenProblem(err))
	}
	return listener, nil
}

// listenProblem says in our words why an address cannot be had.
func listenProblem(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "the address is already in use"
	case errors.Is(err, syscall.EACCES):
		return "the port is reserved"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address"
	}
	return "the address cannot be used"
}

// printAddresses tells who started the server where to go from here.
func (p *program) printAddresses(w io.Writer) {
	catalog := "no catalog yet: import a feed"
	if release := p.health.release.Load(); release != nil {
		catalog = fmt.Sprintf("release %d of %s", release.ID, release.FeedDate)
	}
	base := p.settings.PublicURL
	fmt.Fprintf(w, "palmares serves %s on %s\n\n", catalog, p.store.Describe())
	for _, page := range []struct{ path, what string }{
		{"/", "the catalog for people"},
		{"/api/v1/tools", "the catalog in REST"},
		{"/api/v1/openapi.json", "every path of it, described"},
		{"/graphql", "the catalog in GraphQL"},
		{"/feeds/changes.atom", "what changed, to subscribe to"},
		{"/guides", "how to begin"},
		{"/docs", "the API's reference, to try"},
		{"/explorer", "GraphQL, to click together"},
		{"/account", "sign in, get a key, see what you use"},
		{"/healthz", "alive"},
		{"/readyz", "ready, and the release that is served"},
	} {
		fmt.Fprintf(w, "  %s%-22s %s\n", base, page.path, page.what)
	}
	fmt.Fprintln(w)
}
