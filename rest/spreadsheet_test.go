package rest_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// cell is a cell of a spreadsheet.
type cell struct {
	kind    string // string, float, date, or "" if it is empty
	value   string // of a number or date
	text    string // as a reader sees it
	formula string
}

// maxColumns is more than any list has. The last cell of a row is repeated to the
// edge of the sheet.
const maxColumns = 100

// openInLibreOffice opens a table with the options of an import dialog, and
// returns the cells of each row.
func openInLibreOffice(t *testing.T, table []byte, options string) (rows [][]cell) {
	t.Helper()
	program, dir := testkit.LibreOffice.Ensure(t), t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(dir, "table.csv"), table, 0o600))
	// A separate profile: LibreOffice cannot run twice with the same one.
	cmd := exec.CommandContext(t.Context(), program, "-env:UserInstallation=file://"+filepath.Join(dir, "profile"),
		"--headless", "--infilter=CSV:"+options, "--convert-to", "fods", "--outdir", dir, filepath.Join(dir, "table.csv"))
	out, err := cmd.CombinedOutput()
	check.OK(t, err, "LibreOffice %s", string(out))
	file, err := os.Open(filepath.Join(dir, "table.fods"))
	check.OK(t, err, "LibreOffice wrote no file: %s", string(out))
	defer file.Close()
	return readFlatODS(t, file)
}

// readFlatODS reads the cells of an OpenDocument spreadsheet in one XML file.
func readFlatODS(t *testing.T, file io.Reader) (rows [][]cell) {
	t.Helper()
	attribute := func(start xml.StartElement, name string) string {
		for _, a := range start.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	in := xml.NewDecoder(file)
	var current *cell // while within one
	var repeated, paragraphs int
	inParagraph := false
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return rows
		}
		check.OK(t, err)
		switch element := token.(type) {
		case xml.StartElement:
			switch element.Name.Local {
			case "table-row":
				rows = append(rows, nil)
			case "table-cell":
				current = &cell{kind: attribute(element, "value-type"), formula: attribute(element, "formula")}
				current.value = attribute(element, "value") + attribute(element, "date-value")
				repeated, _ = strconv.Atoi(attribute(element, "number-columns-repeated"))
				paragraphs = 0
			case "p":
				if current != nil && paragraphs > 0 {
					current.text += "\n"
				}
				paragraphs++
				inParagraph = true
			case "s":
				if current != nil {
					spaces, _ := strconv.Atoi(attribute(element, "c"))
					current.text += strings.Repeat(" ", max(1, spaces))
				}
			case "tab":
				if current != nil {
					current.text += "\t"
				}
			}
		case xml.CharData:
			if current != nil && inParagraph {
				current.text += string(element)
			}
		case xml.EndElement:
			switch element.Name.Local {
			case "p":
				inParagraph = false
			case "table-cell":
				for range min(max(1, repeated), maxColumns) {
					rows[len(rows)-1] = append(rows[len(rows)-1], *current)
				}
				current = nil
			}
		}
	}
}

// LibreOffice shows the same values as the API: numbers are numbers, strings are
// strings, and no string is run as a formula.
func TestCSVWithLibreOffice(t *testing.T) {
	names := []string{
		"=1+1", "+1+1", "-1+1", "@SUM(1;1)", "\t=1+1", `=HYPERLINK("https://example.org";"x")`, "a;b,c", `a "quoted" name`, "l’été à Noël, œuvre",
		"two\nlines", `"=1+1"`, "'quoted'", "emoji 😀 €", " spaces ",
	}
	// The options are separator, quote, UTF-8, first line, formats, language, quoted
	// fields as text, detect special numbers, and last, evaluate formulas.
	forms := []struct{ name, query, options string }{
		{"standard", "format=csv", "44,34,76,1,,1033,false,true,false,false,false,0,true"},
		{"excel", "format=csv&dialect=excel", "44,34,76,1,,1033,false,true,false,false,false,0,true"},
		{"excel-fr", "format=csv&dialect=excel-fr", "59,34,76,1,,1036,false,true,false,false,false,0,true"},
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, responses := handlerOver(t, s)
		var tools []any
		for i, name := range names {
			tools = append(tools, feedtest.Tool("tool-"+strconv.Itoa(i), func(t *record.Tool) { t.Name, t.Tagline = name, name+" …" }))
		}
		publishFeed(t, s, responses, feedtest.Catalog("2026-11-01", tools...))
		items := itemsOf(t, handler, "/api/v1/tools?")
		for _, form := range forms {
			rows := openInLibreOffice(t, get(handler, "/api/v1/tools?"+form.query).Body.Bytes(), form.options)
			check.MustTrue(t, len(rows) >= len(items)+1, "%s: got %d rows, want %d", form.name, len(rows), len(items)+1)
			for i, item := range items {
				var want map[string]any
				check.OK(t, json.Unmarshal([]byte(item), &want))
				want["price_amount"], want["price_currency"], want["billing_period"] = 20.0, "EUR", "month"
				for column, head := range rows[0][:len(want)] {
					got := rows[i+1][column]
					switch value := want[head.text].(type) {
					case nil:
						check.Equal(t, got, (cell{}), "%s, row %d: as: %s", form.name, i+1, head.text)
					case float64:
						if number, err := strconv.ParseFloat(got.value, 64); got.kind != "float" || err != nil || number != value {
							t.Errorf("%s, row %d: got %+v as %s, want the number %v", form.name, i+1, got, head.text, value)
						}
					case string:
						if strings.Contains("=+-@\t", value[:1]) {
							value = "'" + value
						}
						if got.formula != "" || got.text != value && got.value != value || got.kind == "float" {
							t.Errorf("%s, row %d: got %+v as %s, want the text %q", form.name, i+1, got, head.text, value)
						}
					}
				}
			}
		}
	})
}
