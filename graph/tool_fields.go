package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/catalog/pricing"
)

// toolFields declares how each field of Tool gets its value from the stored row.
// Fields with subfields and those of storedElsewhere are read separately.
// NewExecutor checks that no field of the schema is missing.
var toolFields = fieldTable[model.Tool]{"Tool", []toolField[model.Tool]{
	{"id", func(t *model.Tool, row *ent.Tool) { t.ID = toolID(row.ID) }},
	{"slug", func(t *model.Tool, row *ent.Tool) { t.Slug = row.ID }},
	{"name", func(t *model.Tool, row *ent.Tool) { t.Name = row.Name }},
	{"domain", func(t *model.Tool, row *ent.Tool) { t.Domain = row.Domain }},
	{"categorySlug", func(t *model.Tool, row *ent.Tool) { t.CategorySlug = row.CategorySlug }},
	{"icp", func(t *model.Tool, row *ent.Tool) { t.Icp = model.Icp(strings.ReplaceAll(string(row.Icp), "-", "_")) }},
	{"icpCode", func(t *model.Tool, row *ent.Tool) { t.IcpCode = string(row.Icp) }},
	{"pricing", func(t *model.Tool, row *ent.Tool) { t.Pricing = model.Pricing(row.Pricing) }},
	{"price", func(t *model.Tool, row *ent.Tool) { t.Price = row.Price }},
	{"priceAmount", func(t *model.Tool, row *ent.Tool) { t.PriceAmount = row.PriceAmount }},
	{"pricePeriod", func(t *model.Tool, row *ent.Tool) { t.PricePeriod = row.PricePeriod }},
	{"billingPeriod", func(t *model.Tool, row *ent.Tool) {
		t.BillingPeriod = model.BillingPeriod(pricing.Period(row.PricePeriod))
	}},
	{"monthlyPrice", func(t *model.Tool, row *ent.Tool) {
		t.MonthlyPrice = orNull(pricing.Monthly(row.PriceAmount, pricing.Period(row.PricePeriod)))
	}},
	{"score", func(t *model.Tool, row *ent.Tool) { t.Score = row.Score }},
	{"verifiability", func(t *model.Tool, row *ent.Tool) { t.Verifiability = row.Verifiability }},
	{"obsolescence", func(t *model.Tool, row *ent.Tool) { t.Obsolescence = row.Obsolescence }},
	{"tagline", func(t *model.Tool, row *ent.Tool) { t.Tagline = row.Tagline }},
	{"canonicalUrl", func(t *model.Tool, row *ent.Tool) { t.CanonicalURL = row.CanonicalURL }},
	{"avisUrl", func(t *model.Tool, row *ent.Tool) { t.AvisURL = row.AvisURL }},
	{"alternativesUrl", func(t *model.Tool, row *ent.Tool) { t.AlternativesURL = row.AlternativesURL }},
	{"updatedAt", func(t *model.Tool, row *ent.Tool) { t.UpdatedAt = row.UpdatedAt }},
	{"tier", func(t *model.Tool, row *ent.Tool) { t.Tier = row.Tier }},
	{"mainstream", func(t *model.Tool, row *ent.Tool) { t.Mainstream = row.Mainstream }},
}}

// storedElsewhere are the fields of Tool without subfields that are not stored
// with the tool, because they are long or rarely selected.
var storedElsewhere = []string{"verdict", "reviewSections"}

// retiredFields declares the fields of RetiredTool.
var retiredFields = fieldTable[model.RetiredTool]{"RetiredTool", []toolField[model.RetiredTool]{
	{"id", func(t *model.RetiredTool, row *ent.Tool) { t.ID = toolID(row.ID) }},
	{"slug", func(t *model.RetiredTool, row *ent.Tool) { t.Slug = row.ID }},
	{"name", func(t *model.RetiredTool, row *ent.Tool) { t.Name = row.Name }},
	{"score", func(t *model.RetiredTool, row *ent.Tool) { t.Score = row.Score }},
	{"categorySlug", func(t *model.RetiredTool, row *ent.Tool) { t.CategorySlug = row.CategorySlug }},
	{"reason", func(t *model.RetiredTool, row *ent.Tool) { t.Reason = model.RetirementReason(row.RetiredReason) }},
	{"retiredAt", func(t *model.RetiredTool, row *ent.Tool) { t.RetiredAt = row.RetiredAt }},
	{"note", func(t *model.RetiredTool, row *ent.Tool) { t.Note = row.RetiredNote }},
}}

// toolField is a field of a GraphQL type that is stored as a row of tools.
type toolField[Model any] struct {
	name string
	set  func(*Model, *ent.Tool)
}

type fieldTable[Model any] struct {
	typeName string
	fields   []toolField[Model]
}

// check compares the table with the schema.
func (t fieldTable[Model]) check(schema *ast.Schema) error {
	var errs []error
	definition := schema.Types[t.typeName]
	for _, field := range definition.Fields {
		declared := slices.ContainsFunc(t.fields, func(f toolField[Model]) bool { return f.name == field.Name })
		if schema.Types[field.Type.Name()].IsLeafType() && !declared && !slices.Contains(storedElsewhere, field.Name) {
			errs = append(errs, fmt.Errorf("field %s.%s has no entry in graph/tool_fields.go", t.typeName, field.Name))
		}
	}
	for _, field := range t.fields {
		if definition.Fields.ForName(field.name) == nil {
			errs = append(errs, fmt.Errorf("graph/tool_fields.go declares %s.%s, which is not in the schema", t.typeName, field.name))
		}
	}
	return errors.Join(errs...)
}

// model converts a row.
func (t fieldTable[Model]) model(row *ent.Tool) *Model {
	m := new(Model)
	for _, field := range t.fields {
		field.set(m, row)
	}
	return m
}
