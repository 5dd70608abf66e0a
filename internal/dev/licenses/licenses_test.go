package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		if got := allowed(c); got != want {
			t.Errorf("%s %q: got allowed %v, want %v", c.name, c.license, got, want)
		}
	}
	var out bytes.Buffer
	if err := check(&out, []component{{name: "a", license: "MIT"}, {name: "b", license: "GPL-3.0"}}); err == nil || !strings.Contains(out.String(), "not allowed: b") {
		t.Errorf("got %v and %q, want an error about b", err, &out)
	}
}

// The program has only allowed licenses, and a complete bill of materials that
// is the same each time.
func TestProgram(t *testing.T) {
	testkit.FullTier(t, "it compiles a program")
	dir, program := t.TempDir(), blackbox.Path(t)
	lock := filepath.Join("..", "..", "web", "apidocs", "web", "package-lock.json")
	var sboms [2][]byte
	for i := range sboms {
		file := filepath.Join(dir, "sbom.json")
		var out bytes.Buffer
		if err := run(t, &out, program, lock, file); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		var err error
		if sboms[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(sboms[0], sboms[1]) {
		t.Error("got two different bills of materials, want equal ones")
	}
	var sbom struct {
		BOMFormat  string
		Metadata   struct{ Component struct{ Name string } }
		Components []struct {
			Ref      string `json:"bom-ref"`
			Version  string
			Licenses []struct{ Expression string }
		}
	}
	if err := json.Unmarshal(sboms[0], &sbom); err != nil || sbom.BOMFormat != "CycloneDX" || sbom.Metadata.Component.Name != "palmares" {
		t.Fatalf("got %+v, %v, want a CycloneDX document about palmares", sbom.Metadata, err)
	}
	seen := map[string]bool{}
	for _, c := range sbom.Components {
		if len(c.Licenses) != 1 || c.Licenses[0].Expression == "" || c.Version == "" || seen[c.Ref] {
			t.Errorf("got component %+v, want a version, one license and a unique reference", c)
		}
		seen[c.Ref] = true
	}
	for _, want := range []string{"pkg:golang/std@", "pkg:golang/github.com/lib/pq@", "pkg:golang/modernc.org/sqlite@", "pkg:npm/graphiql@"} {
		if !strings.Contains(string(sboms[0]), `"purl": "`+want) {
			t.Errorf("got no %s in the bill of materials, want it", want)
		}
	}
}
