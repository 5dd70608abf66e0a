// Licences tells what the program is made of: every module that is linked into
// it and every package in its scripts, each with its licence. It fails on a
// licence that nobody has looked at, and writes a bill of materials in
// CycloneDX JSON. It is a tool of the Makefile; nothing imports it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

func main() {
	bom := flag.String("sbom", "", "where to write the bill of materials")
	lock := flag.String("npm", "", "package-lock.json of what is built into the program")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: licences [-sbom FILE] [-npm package-lock.json] PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *lock, *bom); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// part is something that the program is made of.
type part struct {
	kind          string // golang or npm
	name, version string
	licence       string // by its SPDX name; empty if it is not known
	hash          string // as the lock file has it
}

func run(w io.Writer, program, lock, bom string) error {
	made, parts, err := modules(program)
	if err != nil {
		return err
	}
	if lock != "" {
		packages, err := packages(lock)
		if err != nil {
			return err
		}
		parts = append(parts, packages...)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.name, p.version, p.licence)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if bom != "" {
		if err := writeBOM(bom, made, parts); err != nil {
			return err
		}
	}
	return refuse(w, parts)
}

// refuse names the parts that may not be shipped as they are.
func refuse(w io.Writer, parts []part) error {
	refused := slices.DeleteFunc(slices.Clone(parts), allowed)
	for _, p := range refused {
		fmt.Fprintf(w, "not allowed: %s %s: %q\n", p.name, p.version, p.licence)
	}
	if len(refused) > 0 {
		return fmt.Errorf("%d of %d parts have a licence that is unknown or asks for too much: see policy.go", len(refused), len(parts))
	}
	return nil
}
