package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"palmares/internal/core/problem"
	"palmares/rest"
)

// explaining needs no catalog: what a path means is the same over all.
func explaining(t *testing.T) *rest.Handler {
	t.Helper()
	handler, _ := handlerOver(t, nil)
	return handler
}

func TestExplain(t *testing.T) {
	handler := explaining(t)
	for target, want := range map[string]string{
		"/api/v1/tools?category=code&score_min=7.5&whatever=1": `tools {"category":["code"],"limit":50,"page":1,"score_min":7.5,"sort":"score_desc"}`,
		"/api/v1/cimetiere?reason=mort&page=2":                 `retired {"limit":50,"page":2,"reason":"mort"}`,
		"/api/v1/tools/a%2Fb":                                  `tool {"slug":"a/b"}`,
		"https://elsewhere.example/api/v1/stats":               `stats {}`,
		"/api/embeddings/plume":                                `embeddings {"slug":"plume"}`,
	} {
		for range 2 { // the second comes from what is kept
			query, variables, err := handler.Explain(target)
			if err != nil {
				t.Errorf("%s: %v", target, err)
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(query, "query "), " ")
			given, _ := json.Marshal(variables)
			if got := name + " " + string(given); got != want {
				t.Errorf("%s is %s, not %s", target, got, want)
			}
		}
	}
}

func TestWhatCannotBeExplained(t *testing.T) {
	handler := explaining(t)
	for target, want := range map[string]string{
		"":                          "There is nothing at this path",
		"/api/v1/nothing":           "There is nothing at this path",
		"/api/v1/tools?limit=1000":  "limit",
		"/api/v1/tools?sort=worst":  "one of score_desc",
		"/api/v1/tools/%00":         "NUL",
		"/api/v1/tools/%zz":         "This is not a path",
		"/api/v1/openapi.json":      "no operation",
		"javascript:alert(1)":       "There is nothing at this path",
		"/api/v1/tools\x7f?limit=1": "This is not a path",
	} {
		_, _, err := handler.Explain(target)
		said := problem.Of(err)
		if err == nil || said.Code.Status() >= 500 || !strings.Contains(said.Message, want) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

// The examples are of every path, and each is explained as its own.
func TestOperations(t *testing.T) {
	handler := explaining(t)
	operations := handler.Operations()
	if len(operations) != 10 {
		t.Errorf("there are %d", len(operations))
	}
	for _, operation := range operations {
		query, variables, err := handler.Explain(operation.Example)
		if err != nil || query != operation.Query || operation.Summary == "" {
			t.Errorf("%s: %v", operation.Path, err)
		}
		for _, parameter := range operation.Parameters {
			if _, given := variables[parameter.Name]; given != (parameter.InPath || parameter.Preset != nil) {
				t.Errorf("%s: %s is given: %v", operation.Path, parameter.Name, given)
			}
		}
		if (operation.Path == "/api/embeddings/{slug}") != operation.Keyed {
			t.Errorf("%s needs a key: %v", operation.Path, operation.Keyed)
		}
	}
	if got := rest.ExplorerPath("/api/v1/tools?a=b&c"); got != "/explorer?path=%2Fapi%2Fv1%2Ftools%3Fa%3Db%26c" {
		t.Errorf("the explorer is at %s", got)
	}
}
