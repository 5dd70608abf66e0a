package panels_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// Programs read the files of a server: hyparquet only the parts that it needs, and pandas
// with the types of the columns.
func TestFileReadersWithNode(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	cfg := testkit.SQLite(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 3000, Seed: 1})))
	s := blackbox.Serve(t, cfg)
	key := blackbox.NewKey(t, cfg, "developer")
	wait.Until(t, "the files", func() bool { status, _ := s.Get(t, "/files/index.json"); return status == 200 })

	node := exec.CommandContext(t.Context(), "node", "ranges.mjs", "http://"+s.Address+"/files/latest/tools.parquet", key)
	node.Dir = "testdata"
	var ranges struct {
		Transferred, Size, Rows int
		First                   struct{ Slug string }
	}
	readJSON(t, node, &ranges)
	check.True(t, ranges.Rows == 3000 && ranges.First.Slug != "" && ranges.Transferred != 0 && ranges.Transferred < ranges.Size, "got %+v, want all rows and fewer bytes than the file has", ranges)

	folder := t.TempDir()
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "parquet", folder))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "sqlite", folder+"/catalog.sqlite"))
	var table struct {
		Rows    int
		Types   map[string]string
		Parquet *int
	}
	readJSON(t, exec.CommandContext(t.Context(), testkit.Pandas.Ensure(t), "testdata/tables.py", folder), &table)
	if table.Rows != 3000 || table.Types["monthly_price"] != "float64" || table.Types["tier"] != "int64" || !strings.HasPrefix(table.Types["updated_at"], "datetime64") ||
		table.Parquet != nil && *table.Parquet != 3000 {
		t.Errorf("got %+v from pandas, want 3000 rows with typed columns", table)
	}
}

func readJSON(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("%v: %v %s", cmd.Args, err, stderr)
	}
	check.OK(t, json.Unmarshal(out, into))
}
