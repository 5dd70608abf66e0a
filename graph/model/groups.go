package model

// GroupKey identifies a group among those of its field.
type GroupKey [3]string

// GroupKey returns the values that the tools have in common.
func (g *ToolGroup) GroupKey() GroupKey { return GroupKey{g.Key, orEmpty(g.ThenKey)} }

// GroupKey returns the tool, category or month.
func (g *ComparisonGroup) GroupKey() GroupKey { return GroupKey{g.Key} }

// GroupKey returns the period, the reason and the category.
func (g *RetirementGroup) GroupKey() GroupKey {
	return GroupKey{orEmpty(g.Period), orEmpty(g.Reason), orEmpty(g.Category)}
}

// GroupKey returns the month and the category.
func (g *PriceChangeCount) GroupKey() GroupKey { return GroupKey{g.Month, g.Category} }

func orEmpty[Text ~string](text *Text) string {
	if text == nil {
		return ""
	}
	return string(*text)
}
