package feed

// The format of a feed on one screen: each record's fields, and for each
// field the rule that reads it. What one field cannot tell alone, such as
// whether a category exists, is checked in snapshot.go.

var headerFields = newFields(
	must("format", version(func(h *Header) *int { return &h.Format })),
	must("updated_at", date(func(h *Header) *string { return &h.UpdatedAt })),
)

var categoryFields = newFields(
	must("slug", slug(func(c *Category) *string { return &c.Slug })),
	must("label", textOf(func(c *Category) *string { return &c.Label })),
)

var toolFields = newFields(
	must("slug", slug(func(t *Tool) *string { return &t.Slug })),
	must("name", textOf(func(t *Tool) *string { return &t.Name })),
	must("domain", textOf(func(t *Tool) *string { return &t.Domain })),
	must("category", slug(func(t *Tool) *string { return &t.Category })),
	must("icp", oneOf(func(t *Tool) *string { return &t.ICP }, icps)),
	must("pricing", oneOf(func(t *Tool) *string { return &t.Pricing }, pricings)),
	must("price", price(func(t *Tool) *string { return &t.Price })),
	may("score", scale(func(t *Tool) **float64 { return &t.Score })),
	may("verifiability", scale(func(t *Tool) **float64 { return &t.Verifiability })),
	must("tagline", textOf(func(t *Tool) *string { return &t.Tagline })),
	must("canonical_url", link(func(t *Tool) *string { return &t.CanonicalURL })),
	may("avis_url", orNull(func(t *Tool) **string { return &t.AvisURL }, checkLink)),
	must("alternatives_url", link(func(t *Tool) *string { return &t.AlternativesURL })),
	must("updated_at", date(func(t *Tool) *string { return &t.UpdatedAt })),
	may("tier", whole(func(t *Tool) *int { return (*int)(&t.Tier) }, 1, 3)),
	may("mainstream", flag(func(t *Tool) *bool { return &t.Mainstream })),
	may("obsolescence", scale(func(t *Tool) **float64 { return &t.Obsolescence })),
	may("sections", list(func(t *Tool) *[]Section { return &t.Sections }, sectionFields)),
	may("price_history", list(func(t *Tool) *[]PriceChange { return &t.PriceHistory }, priceChangeFields)),
)

var sectionFields = newFields(
	must("section", textOf(func(s *Section) *string { return &s.Section })),
	must("text", textOf(func(s *Section) *string { return &s.Text })),
)

var priceChangeFields = newFields(
	must("changed_at", date(func(c *PriceChange) *string { return &c.ChangedAt })),
	must("pricing", oneOf(func(c *PriceChange) *string { return &c.Pricing }, pricings)),
	must("price", price(func(c *PriceChange) *string { return &c.Price })),
	must("previous_pricing", oneOf(func(c *PriceChange) *string { return &c.PreviousPricing }, pricings)),
	must("previous_price", price(func(c *PriceChange) *string { return &c.PreviousPrice })),
)

var comparisonFields = newFields(
	must("slug", slug(func(c *Comparison) *string { return &c.Slug })),
	must("title", textOf(func(c *Comparison) *string { return &c.Title })),
	must("tool_a", slug(func(c *Comparison) *string { return &c.ToolA })),
	must("tool_b", slug(func(c *Comparison) *string { return &c.ToolB })),
	must("winner", slug(func(c *Comparison) *string { return &c.Winner })),
	must("winner_note", textOf(func(c *Comparison) *string { return &c.WinnerNote })),
	may("published", flag(func(c *Comparison) *bool { return (*bool)(&c.Published) })),
	must("updated_at", date(func(c *Comparison) *string { return &c.UpdatedAt })),
	must("canonical_url", link(func(c *Comparison) *string { return &c.CanonicalURL })),
)

var retiredFields = newFields(
	must("slug", slug(func(r *Retired) *string { return &r.Slug })),
	must("name", textOf(func(r *Retired) *string { return &r.Name })),
	must("category", slug(func(r *Retired) *string { return &r.Category })),
	must("reason", oneOf(func(r *Retired) *string { return &r.Reason }, reasons)),
	must("retired_at", date(func(r *Retired) *string { return &r.RetiredAt })),
	must("note", textOf(func(r *Retired) *string { return &r.Note })),
	may("score", scale(func(r *Retired) **float64 { return &r.Score })),
)
