package queries

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/core/lang"
	items "palmares/internal/core/table"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
)

// object is one of JSON.
type object = map[string]any

// programs is what a reader pastes into programs to read the CSV of a query. Values in URLs are
// escaped, so that they cannot end the string that they are in.
type programs struct {
	Open, Address       string // URLs without and with a token
	PowerQuery, Grafana string
}

// tokenPlace stands for a token, which the page replaces where JavaScript runs.
const tokenPlace = "YOUR_TOKEN"

// programsOf returns them for the parameters of a page, or nil if there is no CSV.
func programsOf(base string, view *saved.View, query url.Values) *programs {
	if len(view.Columns) == 0 {
		return nil
	}
	path := view.Address + "." + items.CSV
	open, power := base+page.WithQuery(path, query.Encode()), powerQuery(base, path, query)
	query.Set("token", tokenPlace)
	address := base + page.WithQuery(path, query.Encode())
	return &programs{open, address, power, grafana(address, view.Columns)}
}

// powerQuery asks for the token as a Web API key, so that it is stored with the credentials
// and not in the document. The address is fixed, as services that refresh data require.
func powerQuery(base, path string, query url.Values) string {
	quote := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	options := []string{"RelativePath = " + quote(strings.TrimPrefix(path, "/"))}
	if len(query) > 0 {
		var values []string
		for _, name := range slices.Sorted(maps.Keys(query)) {
			var given []string
			for _, value := range query[name] {
				given = append(given, quote(value))
			}
			value := strings.Join(given, ", ")
			if len(given) > 1 {
				value = "{" + value + "}"
			}
			values = append(values, "#"+quote(name)+" = "+value)
		}
		options = append(options, "Query = ["+strings.Join(values, ", ")+"]")
	}
	options = append(options, `ApiKeyName = "token"`)
	return fmt.Sprintf(`let
    Source = Web.Contents(%s, [%s]),
    Table = Table.PromoteHeaders(Csv.Document(Source, [Delimiter = ",", Encoding = 65001]), [PromoteAllScalars = true])
in
    Table`, quote(base), strings.Join(options, ", "))
}

// grafana returns the target of a panel, for the Infinity data source.
func grafana(address string, columns []saved.Column) string {
	var selected []object
	types := map[string]string{"integer": "number", "number": "number", "date": "timestamp", "datetime": "timestamp"}
	for _, c := range columns {
		heading, _ := (&table{Grid: &saved.Grid{Columns: []string{c.Name}}}).words(lang.English, 0, catalog{})
		selected = append(selected, object{"selector": c.Name, "text": heading, "type": cmp.Or(types[c.Field().Type], "string")})
	}
	text, err := json.Marshal(object{
		"refId": "A", "type": items.CSV, "source": "url", "parser": "backend", "format": "table", "url": address, "url_options": object{"method": "GET"}, "columns": selected,
	}, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return ""
	}
	return string(text)
}
