package model

import "palmares/internal/catalog/release"

// Category is a category. Fields that look the same in the catalog are those of
// release.Category.
type Category struct {
	*release.Category
	Siblings *Siblings[*release.Category]
}

// Categories returns categories.
func (v *View) Categories(found []*release.Category) []*Category {
	siblings, categories := newSiblings(v, found), make([]*Category, len(found))
	for i, c := range found {
		categories[i] = &Category{c, siblings}
	}
	return categories
}

// IsNode marks the interface that Category implements.
func (Category) IsNode() {}

// ID returns the global identifier.
func (c *Category) ID() string { return c.Siblings.ID(CategoryPrefix, c.Slug) }

// AvgScoreOrZero returns the average score; 0 if no tool has one.
func (c *Category) AvgScoreOrZero() float64 {
	if c.AvgScore == nil {
		return 0
	}
	return *c.AvgScore
}

// Label returns the label in a language.
func (c *Category) Label(language Language) string {
	return language.text(c.Category.Label, c.Translations.En.Label)
}

// Comparison is a published comparison. Fields that look the same in the catalog are
// those of release.ComparisonText.
type Comparison struct {
	*release.ComparisonText
	of       *release.Comparison
	siblings *Siblings[*release.Comparison]
}

// Comparisons returns comparisons.
func (v *View) Comparisons(found []*release.Comparison) []*Comparison {
	siblings, comparisons := newSiblings(v, found), make([]*Comparison, len(found))
	for i, c := range found {
		comparisons[i] = &Comparison{c.ComparisonText, c, siblings}
	}
	return comparisons
}

// IsNode marks the interface that Comparison implements.
func (Comparison) IsNode() {}

// ID returns the global identifier.
func (c *Comparison) ID() string { return c.siblings.ID(ComparisonPrefix, c.Slug) }

// ToolA, ToolB and Winner return the tools, which may be retired.
func (c *Comparison) ToolA() ComparedTool  { return c.tool(c.of.A) }
func (c *Comparison) ToolB() ComparedTool  { return c.tool(c.of.B) }
func (c *Comparison) Winner() ComparedTool { return c.tool(c.of.Best) }

func (c *Comparison) tool(t *release.Tool) ComparedTool {
	return made(c.siblings, "tools", func() map[*release.Tool]ComparedTool {
		var compared []*release.Tool
		for _, c := range c.siblings.Items {
			compared = append(compared, c.A, c.B)
		}
		return c.siblings.ComparedTools(compared)
	})[t]
}

// WinnerName returns the name of the winner.
func (c *Comparison) WinnerName() string { return c.of.Best.Name }

// Title returns the title in a language.
func (c *Comparison) Title(language Language) string {
	return language.text(c.ComparisonText.Title, c.Translations.En.Title)
}

// WinnerNote returns why the winner was chosen, in a language.
func (c *Comparison) WinnerNote(language Language) string {
	return language.text(c.ComparisonText.WinnerNote, c.Translations.En.WinnerNote)
}

// text returns the text in a language, or the French one if there is no translation.
func (l Language) text(french, english string) string {
	if l == LanguageEn && english != "" {
		return english
	}
	return french
}
