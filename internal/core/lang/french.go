package lang

import "strings"

// french has the translation of every message.
var french = merge(frenchParts)

// frenchParts are the translations by part of the program.
var frenchParts = []map[Message]string{
	frenchLayout, frenchSite, frenchHome, frenchTools, frenchHistory, frenchInformation, frenchPortal, frenchStatus, frenchWorkbench, frenchQueries, frenchMail, frenchProblems,
}

func merge(parts []map[Message]string) map[Message]string {
	all := map[Message]string{}
	for _, part := range parts {
		for m, text := range part {
			all[m] = typesetFormat.Replace(text)
		}
	}
	return all
}

// frenchSpaces are the places where French has no-break spaces, so that
// punctuation never wraps alone. In the source they would look like other spaces.
var frenchSpaces = []string{" :", nbsp + ":", " ;", nbsp + ";", " ?", nbsp + "?", " !", nbsp + "!", " »", nbsp + "»", "« ", "«" + nbsp, " €", nbsp + "€"}

var (
	typesetFormat = strings.NewReplacer(append(frenchSpaces, " %%", nbsp+"%%")...)
	typeset       = strings.NewReplacer(append(frenchSpaces, " %", nbsp+"%", "'", "’")...)
)

// Typeset prepares a sentence in French, such as one of the catalog, for display.
func Typeset(text string) string { return typeset.Replace(text) }
