package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
)

// modules are those that are linked into a program, and the language's own
// library. What it was made of is asked of the program itself: go.mod names
// much more.
func modules(program string) (*debug.BuildInfo, []part, error) {
	made, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, nil, fmt.Errorf("%s tells nothing of its modules: %w", program, err)
	}
	folders, err := moduleFolders()
	if err != nil {
		return nil, nil, err
	}
	parts := []part{{kind: "golang", name: "std", version: strings.TrimPrefix(made.GoVersion, "go"), licence: "BSD-3-Clause"}}
	for _, module := range made.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		parts = append(parts, part{kind: "golang", name: module.Path, version: module.Version, hash: module.Sum, licence: licenceIn(folders[module.Path])})
	}
	return made, parts, nil
}

// moduleFolders are where the modules' sources are.
func moduleFolders() (map[string]string, error) {
	list := exec.Command("go", "list", "-m", "-json=Path,Dir", "all")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	folders := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Path, Dir string }
		err := decoder.Decode(&module)
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return nil, err
		}
		folders[module.Path] = module.Dir
	}
}
