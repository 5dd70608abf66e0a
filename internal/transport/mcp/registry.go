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

// registryEntry is the part of the registry's format that a remote server needs.
type registryEntry struct {
	Schema      string   `json:"$schema"`
	Name        string   `json:"name"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	WebsiteURL  string   `json:"websiteUrl"`
	Remotes     []remote `json:"remotes"`
}

type remote struct {
	Type    string   `json:"type"`
	URL     string   `json:"url"`
	Headers []header `json:"headers"`
}

type header struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	IsRequired  bool   `json:"isRequired"`
	IsSecret    bool   `json:"isSecret"`
	Placeholder string `json:"placeholder"`
}

// RegistryEntry returns the response at RegistryPath.
func (s *Server) RegistryEntry() (*cache.Entry, error) {
	name, err := registryName(s.cfg.PublicURL, s.cfg.ServiceName)
	if err != nil {
		return nil, err
	}
	title := []rune(s.cfg.ServiceName)
	body, err := jsonv2.Marshal(registryEntry{
		Schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		Name:   name, Title: string(title[:min(len(title), 100)]), Version: s.cfg.Version,
		Description: "Tested AI tools: scores, comparisons, prices in euros and their history. Texts in French.",
		WebsiteURL:  s.cfg.PublicURL + "/guides/agents",
		Remotes: []remote{{"streamable-http", s.cfg.PublicURL + Path, []header{
			{"Authorization", "An API key, for a higher quota and review texts.", false, true, "Bearer YOUR_KEY"},
		}}},
	})
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
