package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// listed is a tool as the list shows it.
type listed struct {
	Slug, Pricing, ICP, Price, Category string
	UpdatedAt                           string `json:"updated_at"`
	Score                               *float64
}

// monthly returns the price per month in cents, rounded, or -1.
func (l listed) monthly(t *testing.T) int {
	t.Helper()
	amount, period, _ := strings.Cut(l.Price, " €/")
	var euros float64
	_, err := fmt.Sscan(strings.Replace(amount, ",", ".", 1), &euros)
	check.OK(t, err, "price %q", l.Price)
	cents := int(euros*100 + 0.5)
	switch {
	case l.Pricing == "gratuit" || cents == 0:
		return 0
	case period == "mois":
		return cents
	case period == "an":
		return (2*cents + 12) / 24
	}
	return -1
}

func listTools(t *testing.T, handler http.Handler, query string) (tools []listed) {
	t.Helper()
	got := get(handler, "/api/v1/tools?limit=200&"+query)
	var body struct {
		Data []listed
		Meta struct{ Total int }
	}
	check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), query)
	check.Must(t, got.Code, http.StatusOK, "%s: %s", query, got.Body)
	check.Must(t, body.Meta.Total, len(body.Data), "%s: %s", query, got.Body)
	return body.Data
}

// Filters select the tools that have these values in the whole list, in the same order.
func TestFiltersMatchTheWholeList(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		all := listTools(t, handler, "")
		for query, matches := range map[string]func(listed) bool{
			"pricing=gratuit":          func(l listed) bool { return l.Pricing == "gratuit" },
			"icp=vibe-coder":           func(l listed) bool { return l.ICP == "vibe-coder" },
			"icp=mixte":                func(l listed) bool { return l.ICP == "mixte" },
			"price_max=0":              func(l listed) bool { return l.monthly(t) == 0 },
			"price_max=19.9":           func(l listed) bool { return l.monthly(t) >= 0 && l.monthly(t) <= 1990 },
			"price_max=20":             func(l listed) bool { return l.monthly(t) >= 0 && l.monthly(t) <= 2000 },
			"price_max=1000000":        func(l listed) bool { return l.monthly(t) >= 0 },
			"updated_since=2026-09-01": func(l listed) bool { return l.UpdatedAt >= "2026-09-01" },
			"pricing=freemium&icp=agentic-engineer&price_max=30&updated_since=2026-01-01&score_min=6": func(l listed) bool {
				return l.Pricing == "freemium" && l.ICP == "agentic-engineer" && l.monthly(t) >= 0 && l.monthly(t) <= 3000 &&
					l.UpdatedAt >= "2026-01-01" && l.Score != nil && *l.Score >= 6
			},
		} {
			want := slices.DeleteFunc(slices.Clone(all), func(l listed) bool { return !matches(l) })
			if got := listTools(t, handler, query); fmt.Sprint(slugs(got)) != fmt.Sprint(slugs(want)) || len(want) == 0 || len(want) == len(all) {
				t.Errorf("%s: got %v, want %v", query, slugs(got), slugs(want))
			}
		}
		if got := listTools(t, handler, "price_max=-1"); len(got) > 0 {
			t.Errorf("got %v for a negative price, want none", slugs(got))
		}
	})
}

func slugs(tools []listed) (found []string) {
	for _, l := range tools {
		found = append(found, l.Slug)
	}
	return found
}

// MCP counts the same tools.
func TestToolsForTenEuros(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		check.Equal(t, len(listTools(t, handler, "price_max=10")), 15, "tools for at most €10 a month")
	})
}

func TestSeveralToolsAtOnce(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		for target, want := range map[string]string{
			"tools?slugs=relire-svp,plume&sort=name_asc":   "plume,relire-svp",
			"tools?slugs=plume&slugs=relire-svp&limit=1":   "plume",
			"tools?domain=WWW.plume.example&slugs=plume":   "plume",
			"tools?domain=plume.example&slugs=relire-svp":  "",
			"pricing?slugs=relire-svp,plume,plume":         "plume,relire-svp",
			"pricing?domain=plume.example":                 "plume",
			"comparatifs?slugs=plume-vs-relire-svp,nobody": "plume-vs-relire-svp",
			"comparatifs?domain=relire-svp.example":        "plume-vs-relire-svp",
		} {
			var body struct{ Data []listed }
			got := get(handler, "/api/v1/"+target)
			check.OK(t, json.Unmarshal(got.Body.Bytes(), &body), "%s: %d %s", target, got.Code, got.Body)
			var slugs []string
			for _, item := range body.Data {
				slugs = append(slugs, item.Slug)
			}
			check.Equal(t, strings.Join(slugs, ","), want, target)
		}
		many := "tools?slugs="
		for i := range 201 {
			many += fmt.Sprintf("t%d,", i)
		}
		wantError(t, many, get(handler, "/api/v1/"+strings.TrimSuffix(many, ",")), 400, "slugs must have at most 200 values (got 201).")
		wantError(t, "empty", get(handler, "/api/v1/tools?slugs=plume,"), 400, "slugs must not be empty.")
	})
}
