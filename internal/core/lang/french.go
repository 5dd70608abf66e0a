package lang

import "maps"

// french has the translation of every message, by part of the program.
var french = merge(
	frenchLayout, frenchHome, frenchTools, frenchHistory, frenchInformation, frenchPortal, frenchStatus, frenchWorkbench, frenchQueries, frenchMail, frenchProblems,
)

func merge(parts ...map[Message]string) map[Message]string {
	all := map[Message]string{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}
