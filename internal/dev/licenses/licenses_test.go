package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

func TestAllowed(t *testing.T) {
	for c, want := range map[component]bool{
		{name: "a", license: "MIT"}:                true,
		{name: "a", license: "Unknown"}:            false,
		{name: "a", license: ""}:                   false,
		{name: "a", license: "GPL-3.0"}:            false,
		{name: "a", license: "(GPL-3.0 OR MIT)"}:   true,
		{name: "a", license: "GPL-3.0 AND MIT"}:    false,
		{name: "a", license: "Apache-2.0 AND MIT"}: true,
		{name: "a", license: "MPL-2.0"}:            false,
	} {
		check.Equal(t, allowed(c), want, "%s %q: allowed", c.name, c.license)
	}
	var out bytes.Buffer
	if err := report(&out, []component{{name: "a", license: "MIT"}, {name: "b", license: "GPL-3.0"}}); err == nil || !strings.Contains(out.String(), "not allowed: b") {
		t.Errorf("got %v and %q, want an error about b", err, &out)
	}
}

// The program has only allowed licenses.
func TestProgram(t *testing.T) {
	testkit.FullTier(t, "it reads the licenses of all modules")
	var out bytes.Buffer
	if err := run(t, &out, blackbox.Path(t), filepath.Join("..", "..", "web", "apidocs", "web", "package-lock.json")); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"\nstd ", "\ngithub.com/lib/pq ", "\nmodernc.org/sqlite ", "\ngraphiql "} {
		check.Contains(t, "\n"+out.String(), want, &out)
	}
}
