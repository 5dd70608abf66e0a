package mcp

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"palmares/internal/core/cache"
	"palmares/internal/core/text"
)

// RegistryPath is the path of server.json, the entry of this server for the MCP
// registry.
const RegistryPath = "/.well-known/mcp/server.json"

// RegistryEntry returns the response at RegistryPath.
func (s *Server) RegistryEntry() (*cache.Entry, error) {
	name, err := registryName(s.cfg.PublicURL, s.cfg.ServiceName)
	if err != nil {
		return nil, err
	}
	title := []rune(s.cfg.ServiceName)
	type object = map[string]any
	body, err := jsonv2.Marshal(object{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    name, "title": string(title[:min(len(title), 100)]), "version": s.cfg.Version,
		"description": "Tested AI tools: scores, comparisons, prices in euros and their history. Texts in French.",
		"websiteUrl":  s.cfg.PublicURL + "/guides/agents",
		"remotes": []object{{"type": "streamable-http", "url": s.cfg.PublicURL + Path, "headers": []object{{
			"name": "Authorization", "description": "An API key, for a higher quota and review texts.",
			"isRequired": false, "isSecret": true, "placeholder": "Bearer YOUR_KEY",
		}}}},
	}, jsonv2.Deterministic(true))
	return cache.NewEntry(body, http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"public, max-age=3600"}, "Vary": {"Accept-Encoding"},
	}), err
}

var notInNames = regexp.MustCompile(`[^a-z0-9.]+`)

// registryName returns the name of a server in the registry: the reversed domain, which
// its publisher must prove to control, and the service.
func registryName(publicURL, service string) (string, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return "", err
	}
	labels := strings.Split(u.Hostname(), ".")
	if _, err := netip.ParseAddr(u.Hostname()); err != nil { // an address has no domain
		slices.Reverse(labels)
	}
	clean := func(s string) string { return strings.Trim(notInNames.ReplaceAllString(text.Fold(s), "-"), "-") }
	return clean(strings.Join(labels, ".")) + "/" + clean(service), nil
}
