package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// toolFields declares how each field of Tool gets its value from the catalog.
// Fields with subfields and those of storedElsewhere are read separately.
// NewExecutor checks that no field of the schema is missing.
var toolFields = fieldTable[model.Tool]{"Tool", []toolField[model.Tool]{
	{"id", func(*model.Tool, *release.Tool) {}}, // see withID
	{"slug", func(m *model.Tool, t *release.Tool) { m.Slug = t.Slug }},
	{"name", func(m *model.Tool, t *release.Tool) { m.Name = t.Name }},
	{"domain", func(m *model.Tool, t *release.Tool) { m.Domain = t.Domain }},
	{"categorySlug", func(m *model.Tool, t *release.Tool) { m.CategorySlug = t.Category }},
	{"icp", func(m *model.Tool, t *release.Tool) { m.Icp = icps[t.ICP] }},
	{"icpCode", func(m *model.Tool, t *release.Tool) { m.IcpCode = t.ICP }},
	{"pricing", func(m *model.Tool, t *release.Tool) { m.Pricing = model.Pricing(t.Pricing) }},
	{"price", func(m *model.Tool, t *release.Tool) { m.Price = t.Price }},
	{"priceAmount", func(m *model.Tool, t *release.Tool) { m.PriceAmount = t.Amount }},
	{"pricePeriod", func(m *model.Tool, t *release.Tool) { m.PricePeriod = t.PricePeriod }},
	{"billingPeriod", func(m *model.Tool, t *release.Tool) { m.BillingPeriod = model.BillingPeriod(t.Billing) }},
	{"monthlyPrice", func(m *model.Tool, t *release.Tool) { m.MonthlyPrice = orNull(&t.MonthlyPrice) }},
	{"score", func(m *model.Tool, t *release.Tool) { m.Score = orNull(&t.Score) }},
	{"verifiability", func(m *model.Tool, t *release.Tool) { m.Verifiability = orNull(&t.Verifiability) }},
	{"obsolescence", func(m *model.Tool, t *release.Tool) { m.Obsolescence = orNull(&t.Obsolescence) }},
	{"tagline", func(m *model.Tool, t *release.Tool) { m.Tagline = t.Tagline }},
	{"canonicalUrl", func(m *model.Tool, t *release.Tool) { m.CanonicalURL = t.CanonicalURL }},
	{"avisUrl", func(m *model.Tool, t *release.Tool) { m.AvisURL = t.AvisURL }},
	{"alternativesUrl", func(m *model.Tool, t *release.Tool) { m.AlternativesURL = t.AlternativesURL }},
	{"updatedAt", func(m *model.Tool, t *release.Tool) { m.UpdatedAt = t.UpdatedAt }},
	{"tier", func(m *model.Tool, t *release.Tool) { m.Tier = t.Tier }},
	{"mainstream", func(m *model.Tool, t *release.Tool) { m.Mainstream = t.Mainstream }},
}}

// icps are the audiences by their code, which GraphQL cannot spell.
var icps = func() map[string]model.Icp {
	byCode := map[string]model.Icp{}
	for _, icp := range model.AllIcp {
		byCode[icpCode(icp)] = icp
	}
	return byCode
}()

func icpCode(icp model.Icp) string { return strings.ReplaceAll(string(icp), "_", "-") }

// storedElsewhere are the fields of Tool without subfields that are not stored
// with the tool, because they are long or rarely selected.
var storedElsewhere = []string{"verdict", "reviewSections"}

// retiredFields declares the fields of RetiredTool.
var retiredFields = fieldTable[model.RetiredTool]{"RetiredTool", []toolField[model.RetiredTool]{
	{"id", func(*model.RetiredTool, *release.Tool) {}},
	{"slug", func(m *model.RetiredTool, t *release.Tool) { m.Slug = t.Slug }},
	{"name", func(m *model.RetiredTool, t *release.Tool) { m.Name = t.Name }},
	{"score", func(m *model.RetiredTool, t *release.Tool) { m.Score = orNull(&t.Score) }},
	{"categorySlug", func(m *model.RetiredTool, t *release.Tool) { m.CategorySlug = t.Category }},
	{"reason", func(m *model.RetiredTool, t *release.Tool) { m.Reason = model.RetirementReason(t.Reason) }},
	{"retiredAt", func(m *model.RetiredTool, t *release.Tool) { m.RetiredAt = t.RetiredAt }},
	{"note", func(m *model.RetiredTool, t *release.Tool) { m.Note = t.Note }},
}}

// toolField is a field of a GraphQL type that a tool has in the catalog.
type toolField[Model any] struct {
	name string
	set  func(*Model, *release.Tool)
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

// model converts a tool.
func (t fieldTable[Model]) model(from *release.Tool) *Model {
	m := new(Model)
	for _, field := range t.fields {
		field.set(m, from)
	}
	return m
}
