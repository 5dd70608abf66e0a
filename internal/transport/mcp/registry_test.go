package mcp

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/internal/dev/check"
)

// registrySchema has the registry's rules of 2025-12-11 for the members that we use, in
// our own words. It allows no others, which the registry would not check.
const registrySchema = `{
	"type": "object", "additionalProperties": false, "required": ["$schema", "name", "description", "version", "remotes"],
	"properties": {
		"$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
		"name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
		"title": {"type": "string", "minLength": 1, "maxLength": 100},
		"description": {"type": "string", "minLength": 1, "maxLength": 100},
		"version": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\^~><=*]+$"},
		"websiteUrl": {"type": "string", "pattern": "^https?://"},
		"remotes": {"type": "array", "minItems": 1, "items": {
			"type": "object", "additionalProperties": false, "required": ["type", "url"],
			"properties": {
				"type": {"const": "streamable-http"},
				"url": {"type": "string", "pattern": "^https?://[^\\s]+$"},
				"headers": {"type": "array", "items": {
					"type": "object", "additionalProperties": false, "required": ["name"],
					"properties": {
						"name": {"type": "string"}, "description": {"type": "string"}, "placeholder": {"type": "string"},
						"isRequired": {"type": "boolean"}, "isSecret": {"type": "boolean"}
					}
				}}
			}
		}}
	}
}`

func TestRegistryEntry(t *testing.T) {
	c := onSQLite(t)
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(registrySchema))
	check.OK(t, err)
	for _, e := range []struct{ publicURL, service, name string }{
		{"https://palmares.example", "palmares", "example.palmares/palmares"},
		{"https://api.palmares.example:8443", "Le Palmarès d'été", "example.palmares.api/le-palmares-d-ete"},
		{"http://127.0.0.1:8080", strings.Repeat("é", 150), "127.0.0.1/" + strings.Repeat("e", 150)},
		{"http://[::1]:8080", "palmares", "1/palmares"},
	} {
		c.cfg.PublicURL, c.cfg.ServiceName, c.cfg.Version = e.publicURL, e.service, "v1.2.0-3-gabc"
		entry, err := c.RegistryEntry()
		check.OK(t, err)
		body := string(entry.Body())
		check.Contains(t, body, `"name":"`+e.name+`"`)
		check.Contains(t, body, `"url":"`+e.publicURL+`/mcp"`)
		validate(t, "server.json", schema, body, false)
	}
}
