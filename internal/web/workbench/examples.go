package workbench

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed examples/*.graphql
var exampleFiles embed.FS

// Example is a query that shows what can be asked.
type Example struct {
	Title string `json:"-"`
	Query string `json:"query"`
}

// Examples are all there are, in the order of their files.
var Examples = readExamples()

// readExamples takes each file's first line, a comment, as its title.
func readExamples() []Example {
	names, err := fs.Glob(exampleFiles, "examples/*.graphql")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	var all []Example
	for _, name := range names {
		text, err := fs.ReadFile(exampleFiles, name)
		if err != nil {
			panic(err) // it is embedded
		}
		title, _, _ := strings.Cut(string(text), "\n")
		all = append(all, Example{Title: strings.TrimPrefix(title, "# "), Query: string(text)})
	}
	return all
}
