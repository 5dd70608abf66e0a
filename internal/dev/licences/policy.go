package main

import (
	"slices"
	"strings"
)

// permissive licences ask for their text to be kept, and nothing of ours.
var permissive = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"}

// sharing are licences that ask for changes of their own files to be shown.
// We change none, so each of these is fine as it comes; another one should be
// looked at first.
var sharing = map[string][]string{
	"MPL-2.0": {
		"github.com/hashicorp/golang-lru/v2", // documents and questions that were read before
		"github.com/hashicorp/hcl/v2",        // comes with ent's migrations
	},
}

func allowed(p part) bool {
	// Of "A OR B" one may choose; "A AND B" asks for both.
	for choice := range strings.SplitSeq(strings.Trim(p.licence, "()"), " OR ") {
		every := choice != ""
		for licence := range strings.SplitSeq(choice, " AND ") {
			every = every && (slices.Contains(permissive, licence) || slices.ContainsFunc(sharing[licence], func(name string) bool {
				return p.name == name || strings.HasPrefix(p.name, name+"/")
			}))
		}
		if every {
			return true
		}
	}
	return false
}
