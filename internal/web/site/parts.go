package site

import "slices"

// What parts of templates are given: a template takes one value.

// filter is the form that looks for tools.
type filter struct {
	*asked
	Categories []category
}

func filterOf(a *asked, all []category) filter { return filter{a, all} }

// tools is a table of them.
type tools struct {
	Label string
	Tools []tool
}

func toolList(label string, all []tool) tools { return tools{label, all} }

// paged leads to the pages beside one.
type paged struct {
	Asked *asked
	Place place
}

func pager(a *asked, at place) paged { return paged{a, at} }

// categoryChoice is the field of a form that names a category.
type categoryChoice struct {
	Categories []category
	Said       string
	Unknown    bool // what was said is none of them
}

func choice(all []category, said string) categoryChoice {
	known := slices.ContainsFunc(all, func(c category) bool { return c.Slug == said })
	return categoryChoice{all, said, said != "" && !known}
}

// nothing is what stands in place of an empty list.
type nothing struct {
	Asked     *asked
	Text, All string
	Filtered  bool
	Last      int // the last page, for who went past it
}

func none(a *asked, at place, text, all string) nothing {
	n := nothing{Asked: a, Text: text, All: all, Filtered: len(a.values) > 0}
	if at.Total > 0 {
		n.Last = at.Pages
	}
	return n
}

// option is one of the values that a field of a form has.
type option struct {
	Code   string
	Chosen bool
}

func options(said string, codes ...string) []option {
	var all []option
	for _, code := range codes {
		all = append(all, option{code, code == said})
	}
	return all
}
