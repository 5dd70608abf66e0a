package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRecognise(t *testing.T) {
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of this":                                                                "MIT",
		"   Apache License\n   Version 2.0, January 2004":                                                                                                                     "Apache-2.0",
		"Mozilla Public License, version 2.0\n1.12. “Secondary License”\n means either the GNU General Public License, Version 2.0, or any later versions of those licenses.": "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3":                                                                                                                               "GPL-3.0",
		// Two in one file: the one that asks for more counts.
		"Permission is hereby granted, free of charge, to any person obtaining a copy. Parts are under the GNU Lesser General Public License.": "LGPL-3.0",
		"All rights reserved.": "",
	} {
		if got := recognise(text); got != want {
			t.Errorf("%.40q is %q, not %q", text, got, want)
		}
	}
}

func TestAllowed(t *testing.T) {
	for p, want := range map[part]bool{
		{name: "a", licence: "MIT"}:                                 true,
		{name: "a", licence: ""}:                                    false,
		{name: "a", licence: "GPL-3.0"}:                             false,
		{name: "a", licence: "(GPL-3.0 OR MIT)"}:                    true,
		{name: "a", licence: "GPL-3.0 AND MIT"}:                     false,
		{name: "a", licence: "Apache-2.0 AND MIT"}:                  true,
		{name: "a", licence: "MPL-2.0"}:                             false,
		{name: "github.com/hashicorp/hcl/v2/x", licence: "MPL-2.0"}: true,
		{name: "github.com/hashicorp/hcl/v22", licence: "MPL-2.0"}:  false,
	} {
		if got := allowed(p); got != want {
			t.Errorf("%s: %v", p.licence, got)
		}
	}
	var said bytes.Buffer
	if err := refuse(&said, []part{{name: "a", licence: "MIT"}, {name: "b", licence: "GPL-3.0"}}); err == nil || !strings.Contains(said.String(), "not allowed: b") {
		t.Errorf("%v: %s", err, &said)
	}
}

// What is shipped has licences that were looked at, and a bill that tells all
// of it, the same each time.
func TestOfThisProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "palmares")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "palmares/cmd/palmares")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lock := filepath.Join("..", "..", "web", "workbench", "web", "package-lock.json")
	var bills [2][]byte
	for i := range bills {
		file := filepath.Join(dir, "bill.json")
		var said bytes.Buffer
		if err := run(&said, program, lock, file); err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
		var err error
		if bills[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(bills[0], bills[1]) {
		t.Error("the bill is another each time")
	}
	var b bill
	if err := json.Unmarshal(bills[0], &b); err != nil || b.Format != "CycloneDX" || b.Metadata.Component.Name != "palmares" {
		t.Fatalf("%v: %+v", err, b.Metadata)
	}
	seen := map[string]bool{}
	for _, c := range b.Components {
		if len(c.Licenses) != 1 || c.Version == "" || seen[c.Ref] {
			t.Errorf("%+v", c)
		}
		seen[c.Ref] = true
	}
	for _, want := range []string{"pkg:golang/std@", "pkg:golang/github.com/lib/pq@", "pkg:golang/modernc.org/sqlite@", "pkg:npm/graphiql@"} {
		if !strings.Contains(string(bills[0]), `"purl": "`+want) {
			t.Errorf("the bill lacks %s", want)
		}
	}
}
