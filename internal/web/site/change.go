package site

import "cmp"

// change is an event of the journal, for people.
type change struct {
	Type, Slug, PublishedAt string
	Tool                    *struct{ Name string }
	Before, After           *state
}

// state is what a thing was before a change, or is after it.
type state struct{ Name, Title, Price string }

// Name is what it happened to.
func (c change) Name() string {
	for _, told := range []*state{c.After, c.Before} {
		if told != nil && told.Name+told.Title != "" {
			return cmp.Or(told.Name, told.Title)
		}
	}
	if c.Tool != nil {
		return c.Tool.Name
	}
	return c.Slug
}

// Day is when it was published.
func (c change) Day() string { return c.PublishedAt[:len("2006-01-02")] }
