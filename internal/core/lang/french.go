package lang

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

// frenchFile has the translations by part of the program.
//
//go:embed french.json
var frenchFile []byte

// french returns the translation of every message.
var french = sync.OnceValue(func() map[Message]string {
	var parts map[string]map[Message]string
	if err := json.Unmarshal(frenchFile, &parts); err != nil {
		panic(err) // the file is part of the program
	}
	all := map[Message]string{}
	for _, part := range parts {
		for m, text := range part {
			all[m] = typesetFormat.Replace(text)
		}
	}
	return all
})

// frenchSpaces are the places where French has no-break spaces, so that
// punctuation never wraps alone. In the source they would look like other spaces.
var frenchSpaces = []string{" :", nbsp + ":", " ;", nbsp + ";", " ?", nbsp + "?", " !", nbsp + "!", " »", nbsp + "»", "« ", "«" + nbsp, " €", nbsp + "€"}

var (
	typesetFormat = strings.NewReplacer(append(frenchSpaces, " %%", nbsp+"%%")...)
	typeset       = strings.NewReplacer(append(frenchSpaces, " %", nbsp+"%", "'", "’")...)
)

// Typeset prepares a sentence in French, such as one of the catalog, for display.
func Typeset(text string) string { return typeset.Replace(text) }
