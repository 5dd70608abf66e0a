package main

import (
	"encoding/json"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

// The parts of CycloneDX 1.5 that we fill. No time and no number of its own:
// the same program has the same bill.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Licenses   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

// licence is one SPDX name, or an expression of several.
type licence struct {
	License    *licenceID `json:"license,omitempty"`
	Expression string     `json:"expression,omitempty"`
}

type licenceID struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func writeBOM(file string, made *debug.BuildInfo, parts []part) error {
	b := bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Ref: made.Path, Name: made.Main.Path}}}
	for _, setting := range made.Settings {
		if setting.Key == "GOOS" || setting.Key == "GOARCH" {
			b.Metadata.Component.Properties = append(b.Metadata.Component.Properties, property{setting.Key, setting.Value})
		}
	}
	for _, p := range parts {
		c := component{Type: "library", Ref: p.purl(), Name: p.name, Version: p.version, PURL: p.purl()}
		switch {
		case strings.Contains(p.licence, " "):
			c.Licenses = []licence{{Expression: p.licence}}
		case p.licence != "":
			c.Licenses = []licence{{License: &licenceID{p.licence}}}
		}
		if p.hash != "" {
			c.Properties = []property{{"palmares:lock", p.hash}}
		}
		b.Components = append(b.Components, c)
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// purl is the name that tools look a part up by.
func (p part) purl() string {
	escaped := strings.Split(p.name, "/")
	for i, piece := range escaped {
		escaped[i] = strings.ReplaceAll(url.PathEscape(piece), "@", "%40")
	}
	return "pkg:" + p.kind + "/" + strings.Join(escaped, "/") + "@" + p.version
}
