package lang

import "strings"

// french has the translation of every message, by part of the program.
var french = merge(
	frenchLayout, frenchSite, frenchHome, frenchTools, frenchHistory, frenchInformation, frenchPortal, frenchStatus, frenchWorkbench, frenchQueries, frenchMail, frenchProblems,
)

func merge(parts ...map[Message]string) map[Message]string {
	all := map[Message]string{}
	for _, part := range parts {
		for m, text := range part {
			all[m] = typeset.Replace(text)
		}
	}
	return all
}

// typeset puts no-break spaces where French has them, so that punctuation never
// wraps alone. In the source they would look like other spaces.
var typeset = strings.NewReplacer(" :", nbsp+":", " ;", nbsp+";", " ?", nbsp+"?", " !", nbsp+"!", " »", nbsp+"»", "« ", "«"+nbsp, " €", nbsp+"€", " %%", nbsp+"%%")
