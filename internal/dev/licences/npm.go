package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// packages are those of npm that the scripts are built from. Their lock file
// tells each one's licence.
func packages(lock string) ([]part, error) {
	data, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var file struct {
		Packages map[string]struct {
			Version, License, Integrity string
			Dev, Optional               bool
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	var parts []part
	for path, p := range file.Packages {
		// What builds them is not in them; optional ones are for one machine each.
		if path == "" || p.Dev || p.Optional {
			continue
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		parts = append(parts, part{kind: "npm", name: name, version: p.Version, licence: p.License, hash: p.Integrity})
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name+"@"+a.version, b.name+"@"+b.version) })
	return slices.Compact(parts), nil
}
