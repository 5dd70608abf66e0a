package main

import "regexp"

// target is a set of rules with the tests that must notice every change of them.
type target struct {
	name    string
	files   []string
	without *regexp.Regexp // functions that are not mutated
	tests   string         // the folder of the tests
	pattern    string         // the names of the tests
}

var targets = []target{
	{name: "prices", files: []string{"internal/catalog/pricing/pricing.go"}, tests: "internal/catalog/pricing", pattern: "."},
}
