package graph

import (
	"math"
	"strings"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// newTools converts active tools, without what is stored elsewhere.
func newTools(found []*release.Tool) []*model.Tool {
	all, tools := make([]model.Tool, len(found)), make([]*model.Tool, len(found))
	for i, t := range found {
		all[i] = newTool(t)
		tools[i] = &all[i]
	}
	return tools
}

func newTool(t *release.Tool) model.Tool {
	return model.Tool{
		Tool: t, CategorySlug: t.Category, Icp: icps[t.ICP], IcpCode: t.ICP,
		Pricing: model.Pricing(t.Pricing), PriceAmount: t.Amount,
		BillingPeriod: model.BillingPeriod(t.Billing), MonthlyPrice: orNull(&t.MonthlyPrice),
		Score: orNull(&t.Score), Verifiability: orNull(&t.Verifiability), Obsolescence: orNull(&t.Obsolescence),
	}
}

// newRetired converts a retired tool, without what is stored elsewhere.
func newRetired(t *release.Tool) *model.RetiredTool {
	return &model.RetiredTool{
		Slug: t.Slug, Name: t.Name, Score: orNull(&t.Score), CategorySlug: t.Category,
		Reason: model.RetirementReason(t.Reason), RetiredAt: t.RetiredAt, Note: t.RetiredNote,
	}
}

// icps are the audiences by their code, which GraphQL cannot spell.
var icps = func() map[string]model.Icp {
	byCode := map[string]model.Icp{}
	for _, icp := range model.AllIcp {
		byCode[icpCode(icp)] = icp
	}
	return byCode
}()

func icpCode(icp model.Icp) string { return strings.ReplaceAll(string(icp), "_", "-") }

// orNull returns nil for NaN.
func orNull(number *float64) *float64 {
	if math.IsNaN(*number) || math.IsInf(*number, 0) {
		return nil
	}
	return number
}
