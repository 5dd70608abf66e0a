package saved_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// Every query of the service can be read as a table, as CSV and as NDJSON.
func TestOwnQueriesAsTables(t *testing.T) {
	columns := map[string]string{ // of the queries whose result is not a simple list
		"scores-by-category-and-month": "key,period,value",
		"scores-by-pricing":            "list,from,to,count",
		"good-and-affordable":          "meta.total,slug,name,price,monthlyPrice,billingPeriod,score",
		"compared-with":                "meta.total,slug,toolA.slug,toolA.name,toolA.score,toolB.slug,toolB.name,toolB.score,winnerName",
		"key-figures":                  "period,count,tested,mean_score,mean_monthly_price,additions,retirements",
		"not-updated":                  "meta.total,slug,name,updatedAt,score",
		"growth":                       "period,start,count,additions,retirements",
	}
	each(t, func(t *testing.T, s *service) {
		paths, found := s.ownQueries(t), 0
		for _, path := range paths {
			rows, err := csv.NewReader(strings.NewReader(s.get(t, path+".csv").want(t, 200, "").body)).ReadAll() // all of the same length
			if err != nil || len(rows) < 2 {
				t.Errorf("%s: got %d rows and %v, want a header and rows", path, len(rows), err)
				continue
			}
			name := strings.TrimPrefix(path, "/q/palmares/")
			if want, known := columns[name]; known {
				if found++; strings.Join(rows[0], ",") != want {
					t.Errorf("%s: got columns %v, want %s", path, rows[0], want)
				}
			}
			lines := strings.Split(strings.TrimSpace(s.get(t, path+".ndjson").want(t, 200, "{").body), "\n")
			if len(lines) != len(rows)-1 {
				t.Errorf("%s: got %d lines of NDJSON, want %d as in CSV", path, len(lines), len(rows)-1)
				continue
			}
			for i, line := range lines {
				in := json.NewDecoder(strings.NewReader(line))
				in.UseNumber()
				var row map[string]any
				check.OK(t, in.Decode(&row))
				for column, name := range rows[0] {
					value := valueAt(row, name)
					if value == nil {
						value = ""
					}
					check.Equal(t, strings.TrimPrefix(rows[i+1][column], "'"), fmt.Sprint(value), "%s, row %d, %s: %v", path, i+1, name, value)
				}
			}
		}
		check.Equal(t, found, len(columns), "of the queries with known columns")
	})
}

// ownQueries returns the paths of the queries of the service, each of which must have a
// CSV.
func (s *service) ownQueries(t *testing.T) (paths []string) {
	t.Helper()
	var document struct{ Paths map[string]any }
	check.OK(t, json.Unmarshal([]byte(s.get(t, "/q/palmares/openapi.json").body), &document))
	for path := range document.Paths {
		if strings.Contains(path, ".") {
			continue
		}
		if _, hasTable := document.Paths[path+".csv"]; !hasTable {
			t.Errorf("%s: got no CSV in the OpenAPI document, want one", path)
		}
		paths = append(paths, path)
	}
	if len(paths) < 15 {
		t.Fatalf("got %d queries, want at least 15", len(paths))
	}
	return paths
}

// valueAt returns the field with a name, or the field of a nested object.
func valueAt(row map[string]any, name string) any {
	if value, flat := row[name]; flat {
		return value
	}
	outer, inner, _ := strings.Cut(name, ".")
	nested, _ := row[outer].(map[string]any)
	if nested == nil {
		return nil
	}
	return valueAt(nested, inner)
}
