package model

import "palmares/internal/catalog/release"

// Category is a category. Fields that look the same in the catalog are those of
// release.Category.
type Category struct {
	*release.Category

	ID             string
	AvgScoreOrZero float64
}

// IsNode marks the interface that Category implements.
func (Category) IsNode() {}

// Label returns the label in a language.
func (c *Category) Label(language Language) string {
	return language.text(c.Category.Label, c.Translations.En.Label)
}

// Comparison is a published comparison. Fields that look the same in the catalog are
// those of release.ComparisonText.
type Comparison struct {
	*release.ComparisonText

	ID                   string
	ToolA, ToolB, Winner ComparedTool // if they are selected
	WinnerName           string
}

// IsNode marks the interface that Comparison implements.
func (Comparison) IsNode() {}

// Title returns the title in a language.
func (c *Comparison) Title(language Language) string {
	if c.Translations == nil {
		return c.ComparisonText.Title
	}
	return language.text(c.ComparisonText.Title, c.Translations.En.Title)
}

// WinnerNote returns why the winner was chosen, in a language.
func (c *Comparison) WinnerNote(language Language) string {
	if c.Translations == nil {
		return c.ComparisonText.WinnerNote
	}
	return language.text(c.ComparisonText.WinnerNote, c.Translations.En.WinnerNote)
}

// text returns the text in a language, or the French one if there is no translation.
func (l Language) text(french, english string) string {
	if l == LanguageEn && english != "" {
		return english
	}
	return french
}
