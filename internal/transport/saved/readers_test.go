package saved_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// table is what a program has read from a CSV file.
type table struct {
	Rows    int
	Columns [][2]any // name, and whether it has numbers
}

// LibreOffice, pandas and DuckDB read every query of the service with the same rows
// and columns, and numbers as numbers.
func TestOwnQueriesWithLibreOfficePandasAndDuckDB(t *testing.T) {
	s := onSQLite(t)
	dir := t.TempDir()
	var files []string
	var want []table
	for _, path := range s.ownQueries(t) {
		body := s.get(t, path+".csv").want(t, 200, "").body
		file := filepath.Join(dir, filepath.Base(path)+".csv")
		check.OK(t, os.WriteFile(file, []byte(body), 0o600))
		files, want = append(files, file), append(want, tableOf(t, body))
	}
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = "testdata"
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		return string(out)
	}
	testkit.NPM(t, "testdata")
	for name, out := range map[string]string{
		"pandas": run(testkit.Pandas.Ensure(t), append([]string{"pandas_columns.py"}, files...)...),
		"DuckDB": run(testkit.Node.Ensure(t), append([]string{"duckdb.mjs"}, files...)...),
	} {
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var got table
			check.OK(t, json.Unmarshal([]byte(line), &got))
			if got.Rows != want[i].Rows || !slices.Equal(got.Columns, want[i].Columns) {
				t.Errorf("%s, %s: got %+v, want %+v", name, filepath.Base(files[i]), got, want[i])
			}
		}
	}

	// The options are separator, quote and UTF-8.
	converted := filepath.Join(dir, "converted")
	run(testkit.LibreOffice.Ensure(t), append([]string{"-env:UserInstallation=file://" + filepath.Join(dir, "profile"),
		"--headless", "--infilter=CSV:44,34,76,1,,1033,false,false", "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76", "--outdir", converted}, files...)...)
	for i, file := range files {
		text, err := os.ReadFile(filepath.Join(converted, filepath.Base(file)))
		check.OK(t, err)
		if got := tableOf(t, string(text)); got.Rows != want[i].Rows || !slices.Equal(got.Columns, want[i].Columns) {
			t.Errorf("LibreOffice, %s: got %+v, want %+v", filepath.Base(file), got, want[i])
		}
	}
}

// tableOf returns the rows and columns of a CSV file. A column has numbers if all of
// its values are.
func tableOf(t *testing.T, text string) table {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	check.OK(t, err)
	found := table{Rows: len(rows) - 1}
	for i, name := range rows[0] {
		numbers := true
		for _, row := range rows[1:] {
			if _, err := strconv.ParseFloat(row[i], 64); row[i] != "" && err != nil {
				numbers = false
			}
		}
		found.Columns = append(found.Columns, [2]any{name, numbers})
	}
	return found
}
