// Linearizable records what clients of three servers see while services fail, and
// checks the recorded histories: an order must explain every quota decision, and
// releases, review texts and events must follow the rules in releases.go. It prints a
// table, and stores a history that breaks a rule as a file, which a test replays.
//
//	make linearizable
//	make linearizable SECONDS=600
//
// Start with the models in quota.go. The servers, Redis and PostgreSQL are real, and
// all connections between them go through proxies (cluster.go).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

func main() {
	seconds := flag.Int("seconds", 120, "how long to record")
	only := flag.String("only", "", "quota or catalog, to record nothing else")
	folder := flag.String("store", "test-output", "folder for histories that break a rule")
	flag.Parse()
	testkit.Main("linearizable", func(t testing.TB) {
		if flag.NArg() != 1 {
			t.Fatal("usage: linearizable [-seconds N] [-only quota|catalog] [-store FOLDER] PALMARES")
		}
		blackbox.UseProgram(t, flag.Arg(0))
		r := &results{t: t, folder: *folder, table: load.NewTable("history", "model", "operations", "without a response", "granted", "refused", "result")}
		length := time.Duration(*seconds) * time.Second / 2
		c := startCluster(t)
		if *only != "catalog" {
			checkQuotas(t, c, r, length/time.Duration(len(faults)+1))
		}
		if *only != "quota" {
			r.addCatalog(recordCatalog(t, c, length))
		}
		r.table.Print(os.Stdout)
		if len(r.violations) > 0 {
			t.Fatal(strings.Join(r.violations, "\n"))
		}
	})
}

// results are printed at the end.
type results struct {
	t          testing.TB
	folder     string
	table      *load.Table
	violations []string
}

func (r *results) addQuota(f fault, histories ...*calls) {
	var granted, refused, unanswered, operations int
	var found []string
	for _, h := range histories {
		operations += len(h.Calls)
		for _, c := range h.Calls {
			switch c.Status {
			case 0:
				unanswered++
			case 429:
				refused++
			default:
				granted++
			}
		}
		for _, violation := range h.check(patience) {
			subject, _, _ := strings.Cut(violation, ":")
			r.fail("quota: "+f.name, violation, h.only(subject))
			found = append(found, violation)
		}
	}
	r.table.Add("quota: "+f.name, histories[0].Model, operations, unanswered, granted, refused, verdict(found))
	fmt.Fprintln(os.Stderr, f.name)
}

func (r *results) addCatalog(h *catalogHistory) {
	found := h.check()
	r.table.Add(fmt.Sprintf("reads during imports, %d prunes and %d restore", len(h.Prunes), len(h.Restores)), "monotonic, as_of, ETag", len(h.Reads), "", "", "", verdict(found))
	r.table.Add("syncs", "complete, once", len(h.Syncs), "", "", "", "")
	r.table.Add("webhook events", "at least once, one ID", len(h.Journal), "", "", "", "")
	for _, violation := range found {
		r.fail("catalog", violation, nil)
	}
	if len(found) > 0 {
		r.fail("catalog", "stored", h)
	}
}

func verdict(violations []string) string {
	if len(violations) == 0 {
		return "holds"
	}
	return fmt.Sprintf("%d VIOLATIONS", len(violations))
}

// fail reports a violation, and stores its history if there is one.
func (r *results) fail(name, violation string, history any) {
	text := name + ": " + violation
	if history != nil {
		data, err := json.MarshalIndent(history, "", " ")
		check.OK(r.t, err)
		check.OK(r.t, os.MkdirAll(r.folder, 0o755))
		kind := "quota"
		if _, ok := history.(*catalogHistory); ok {
			kind = "catalog"
		}
		file := filepath.Join(r.folder, fmt.Sprintf("%s-%d.json", kind, len(r.violations)))
		check.OK(r.t, os.WriteFile(file, data, 0o644))
		text += " (" + file + ")"
	}
	r.violations = append(r.violations, text)
}
