package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

// onDisk writes the small catalog to a directory.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check.OK(t, os.CopyFS(dir, valid()))
	return dir
}

func TestNew(t *testing.T) {
	for recordType, lines := range map[string]string{
		record.TypeTool:       "name: Encre\ndomain: encre.example\ncategory: code\nicp: mixte\npricing: gratuit\nprice: 0 €/mois\ntagline: Écrire.\ncanonical_url: https://a.example\nalternatives_url: https://a.example\n",
		record.TypeComparison: "title: Deux\nwinner: plume\nwinner_note: Oui.\ncanonical_url: https://a.example\n",
		record.TypeRetired:    "name: Encre\ncategory: code\nreason: mort\nnote: Fin.\n",
	} {
		dir, slug := onDisk(t), "encre"
		if recordType == record.TypeComparison {
			slug = "vieux-bot-vs-plume"
		}
		name, err := New(dir, recordType, slug, "2026-11-17")
		check.OK(t, err)
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		check.OK(t, err)
		if _, err := export(t, os.DirFS(dir)); err == nil || strings.Count(err.Error(), name) != strings.Count(lines, "\n") {
			t.Errorf("%s: got %v, want an error for each field to fill in", name, err)
		}
		filled := string(text)
		for line := range strings.Lines(lines) {
			field, _, _ := strings.Cut(line, ":")
			check.Contains(t, filled, "\n"+field+": \"\"\n", "%s: %s", name, text)
			filled = strings.Replace(filled, field+": \"\"\n", line, 1)
		}
		// Every optional field is there as a comment that needs only a value.
		for _, field := range record.FieldNames(recordType) {
			if field != "slug" && !strings.Contains(filled, "\n"+field+": ") && !strings.Contains(filled, "\n# "+field+":\n") {
				t.Errorf("%s: got\n%s\nwant field %s", name, text, field)
			}
		}
		check.OK(t, os.WriteFile(path, []byte(filled), 0o644))
		if got, err := export(t, os.DirFS(dir)); err != nil || !strings.Contains(got, `"slug":"`+slug+`"`) || !strings.Contains(got, `_at":"2026-11-17"`) {
			t.Errorf("%s: got %v and\n%s\nwant the record with today's date", name, err, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range [][3]string{
		{record.TypeTool, "plume", "tools/plume.md exists already; choose another slug, or edit that file"},
		{record.TypeTool, "vieux-bot", "cimetiere/vieux-bot.md exists already; choose another slug, or edit that file"},
		{record.TypeRetired, "plume", "tools/plume.md exists already; choose another slug, or edit that file"},
		{record.TypeTool, "../x", `slug: must be words of a-z and 0-9 joined by single hyphens (got "../x")`},
	} {
		if _, err := New(onDisk(t), test[0], test[1], "2026-11-17"); err == nil || err.Error() != test[2] {
			t.Errorf("%s %s: got %v, want %s", test[0], test[1], err, test[2])
		}
	}
	if _, err := New(t.TempDir(), record.TypeTool, "x", "2026-11-17"); err != ErrNotCatalog {
		t.Errorf("got %v, want %v", err, ErrNotCatalog)
	}
}

func TestRetire(t *testing.T) {
	dir := onDisk(t)
	// Errors elsewhere do not matter.
	check.OK(t, os.WriteFile(filepath.Join(dir, "tools", "broken.md"), []byte("x"), 0o644))
	name, err := Retire(t.Context(), dir, &record.Retired{Slug: "plume", Reason: "pivot", RetiredAt: "2026-11-17", Note: "Fin : vraiment."})
	check.OK(t, err)
	check.OK(t, os.Remove(filepath.Join(dir, "tools", "broken.md")))
	got, err := export(t, os.DirFS(dir))
	want := `{"type":"cimetiere","slug":"plume","name":"Plume","category":"code","reason":"pivot","retired_at":"2026-11-17","note":"Fin : vraiment.","score":8.4}`
	if err != nil || name != "cimetiere/plume.md" || !strings.Contains(got, want) || strings.Contains(got, `"type":"tool"`) {
		t.Errorf("%s: got %v and\n%s\nwant\n%s", name, err, got, want)
	}
}

func TestRetireRefuses(t *testing.T) {
	dir := onDisk(t)
	check.OK(t, os.WriteFile(filepath.Join(dir, "tools", "vieux-bot.md"), valid()["tools/plume.md"].Data, 0o644))
	check.OK(t, os.WriteFile(filepath.Join(dir, "tools", "broken.md"), []byte("x"), 0o644))
	check.OK(t, os.WriteFile(filepath.Join(dir, "catalog.yml"), []byte("x"), 0o644))
	for slug, want := range map[string]string{
		"nobody":    `there is no tool "nobody"; its file must be in tools/`,
		"../plume":  `there is no tool "../plume"; its file must be in tools/`,
		"broken":    "tools/broken.md:1:1: must begin with the record's fields between two lines ---; correct it first",
		"vieux-bot": "cimetiere/vieux-bot.md exists already; remove it, or the file of the tool",
	} {
		if _, err := Retire(t.Context(), dir, &record.Retired{Slug: slug, Reason: "pivot", RetiredAt: "2026-11-17"}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", slug, err, want)
		}
	}
	if _, err := Retire(t.Context(), dir, &record.Retired{Slug: "plume", RetiredAt: "soon"}); err == nil || !strings.HasPrefix(err.Error(), "--date: must be a calendar date") {
		t.Errorf("got %v, want an error for the date", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tools", "plume.md")); err != nil {
		t.Errorf("got %v, want the tool where it was", err)
	}
}

// TestEditsRefuseLinks checks that no command writes or reads behind a link.
func TestEditsRefuseLinks(t *testing.T) {
	dir, outside := onDisk(t), t.TempDir()
	tool := filepath.Join(dir, "tools", "plume.md")
	check.OK(t, os.Rename(tool, filepath.Join(outside, "plume.md")))
	check.OK(t, os.Symlink(filepath.Join(outside, "plume.md"), tool))
	const what = " is a symbolic link, which is not followed; replace it with what it refers to"
	if _, err := Retire(t.Context(), dir, &record.Retired{Slug: "plume", Reason: "pivot", RetiredAt: "2026-11-17"}); err == nil || err.Error() != "tools/plume.md"+what {
		t.Errorf("got %v, want tools/plume.md%s", err, what)
	}
	check.OK(t, os.RemoveAll(filepath.Join(dir, "tools")))
	check.OK(t, os.Symlink(outside, filepath.Join(dir, "tools")))
	if _, err := New(dir, record.TypeTool, "encre", "2026-11-17"); err == nil || err.Error() != "tools"+what {
		t.Errorf("got %v, want tools%s", err, what)
	}
	if files, err := os.ReadDir(outside); err != nil || len(files) != 1 {
		t.Errorf("got %v and %v, want only the tool outside of the folder", files, err)
	}
}
