package folder

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

// export reads a folder and writes it as an export would.
func export(t *testing.T, files fs.FS) (string, error) {
	t.Helper()
	var records []record.Record
	source := check.Try(Open(files)).OK(t)
	header, err := feed.Read(t.Context(), source, func(_ int, rec record.Record) { records = append(records, rec) })
	if err != nil {
		return "", err
	}
	var lines bytes.Buffer
	out := feed.NewWriter(&lines, header.UpdatedAt)
	for _, rec := range records {
		out.Write(rec)
	}
	check.OK(t, out.Flush())
	return lines.String(), nil
}

// pieces are parts of texts that YAML, Markdown or a program may take for something else.
var pieces = []string{
	"a", "é", "Plume", "\u00A0:", " : ", ": ", ":", " #", "#", "## ", "##", "\n## x\n", "---", "\n---\n", "\r", "\r\n", "\n", "\n\n", " ", "\t",
	"- ", "* ", "&a", "*a", "!x", "|", ">", "%", "@", "`", "'", `"`, `\`, `\n`, "{", "}", "[", "]", ",", "?", "~", "null", "yes", "No", "true", "1e3", "0x1F",
	"2026-11-02", "12:30", ".inf", "<<", "=", "\u0085", "\u2028", "\u2029", "\uFEFF", "\u202E", "\u007F", "\x01", "\x1B[31m", "😀", "\U000E0001", "20 €/mois", "```", "<!--", "# lint:disable x",
}

func hostile(r *rand.Rand) string {
	for {
		var s strings.Builder
		for range 1 + r.IntN(6) {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
		if strings.ContainsAny(s.String(), "aéPx1nyN😀") { // texts must not be blank
			return s.String()
		}
	}
}

func randomRecords(r *rand.Rand) (records []record.Record) {
	slugs := []string{"code", "null", "true", "1", "2026-11-02", "0x1f", "readme"}
	for _, slug := range slugs[:1+r.IntN(len(slugs))] {
		records = append(records, &record.Category{Slug: slug, Label: hostile(r)})
	}
	for i, slug := range slugs {
		tool := &record.Tool{
			Slug: slug, Name: hostile(r), Domain: hostile(r), Category: records[0].RecordSlug(), ICP: "mixte", Pricing: "gratuit",
			Price: []string{"0 €/mois", "12,50 €/mois", "1 €/an: #x"}[r.IntN(3)], Tagline: hostile(r),
			CanonicalURL: "https://a.example/#?x=: y"[:20+r.IntN(2)], AlternativesURL: "http://b.example/'", UpdatedAt: "2026-01-02", Tier: record.Tier(1 + r.IntN(3)), Mainstream: r.IntN(2) == 0,
		}
		if score := float64(r.IntN(1000)) / []float64{100, 1e7, 1e-2 * 1e4}[r.IntN(3)]; r.IntN(2) == 0 {
			tool.Score, tool.Obsolescence = &score, &score
		}
		for j := range r.IntN(4) {
			tool.Sections = append(tool.Sections, record.Section{Section: fmt.Sprint(j, hostile(r)), Text: hostile(r)})
			if r.IntN(2) == 0 {
				tool.Sections[j].Section = fmt.Sprint("s", j)
			}
		}
		for range r.IntN(3) {
			tool.PriceHistory = append(tool.PriceHistory, record.PriceChange{ChangedAt: "2025-01-02", Pricing: "payant", Price: "1 €/an", PreviousPricing: "payant", PreviousPrice: "2 €/an"})
		}
		if r.IntN(4) == 0 {
			records = append(records, &record.Retired{Slug: slug, Name: tool.Name, Category: tool.Category, Reason: "mort", RetiredAt: "2026-01-01", Note: tool.Tagline, Score: tool.Score})
			slugs[i] = ""
			continue
		}
		records = append(records, tool)
	}
	for i := range r.IntN(3) {
		slug := records[len(records)-1].RecordSlug()
		if _, ok := records[len(records)-1].(*record.Comparison); ok {
			break
		}
		records = append(records, &record.Comparison{Slug: fmt.Sprint("c", i), Title: hostile(r), ToolA: slug, ToolB: slug, Winner: slug, WinnerNote: hostile(r), Published: r.IntN(2) == 0, UpdatedAt: "2026-01-02", CanonicalURL: "https://a.example"})
	}
	return records
}

func write(t *testing.T, records []record.Record) string {
	t.Helper()
	dir := t.TempDir()
	out := check.Try(NewWriter(dir, record.Header{Format: 1, UpdatedAt: "2026-11-10"})).OK(t)
	for _, rec := range records {
		check.OK(t, out.Write(rec))
	}
	check.OK(t, out.Close([]byte("Read me.")))
	return dir
}

// TestRoundTrip writes feeds with hostile texts as folders and reads them again.
func TestRoundTrip(t *testing.T) {
	inText := 0
	for seed := range uint64(150) {
		records := randomRecords(rand.New(rand.NewPCG(seed, 0)))
		var want bytes.Buffer
		out := feed.NewWriter(&want, "2026-11-10")
		for _, recordType := range record.Types {
			for _, slug := range []string{"", "0x1f", "1", "2026-11-02", "c0", "c1", "code", "null", "readme", "true"} {
				for _, rec := range records {
					if rec.RecordType() == recordType && rec.RecordSlug() == slug {
						out.Write(rec)
						if tool, ok := rec.(*record.Tool); ok {
							_, text := splitSections(tool.Sections)
							inText += len(text)
						}
					}
				}
			}
		}
		check.OK(t, out.Flush())
		got := check.Try(export(t, os.DirFS(write(t, records)))).OK(t, "seed %d", seed)
		check.Must(t, sorted(got), sorted(want.String()), "seed %d", seed)
	}
	check.True(t, inText >= 150, "got %d sections in texts, want most of the simple ones", inText)
}

// sorted orders the lines: categories are in the order of their file.
func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	categories := 1
	for strings.HasPrefix(all[categories], `{"type":"category"`) {
		categories++
	}
	header, rest := all[:1], all[1:categories]
	slices.Sort(rest)
	return strings.Join(append(header, append(rest, all[categories:]...)...), "\n")
}

// valid is a small catalog.
func valid() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"catalog.yml":    file("format: 1\nupdated_at: 2026-11-10\n"),
		"categories.yml": file("# The categories.\n- slug: code\n  label: Code\n- slug: voix\n  label: Voix\n"),
		"tools/plume.md": file(`---
name: Plume
domain: plume.example
price: 20 €/mois
pricing: freemium
category: code
icp: mixte
score: 8.4
tagline: "Écrire : vite et bien"
canonical_url: https://palmares.example/plume
alternatives_url: https://palmares.example/plume/alternatives
updated_at: 2026-11-02
price_history:
  - changed_at: 2026-05-01
    pricing: freemium
    price: 20 €/mois
    previous_pricing: gratuit
    previous_price: 0 €/mois
---

## verdict

Un texte.

- une liste

## prix

Un autre.
`),
		"cimetiere/vieux-bot.md":            file("---\nname: Vieux Bot\ncategory: code\nreason: acquis\nretired_at: 2026-03-14\nnote: Parti.\n---\n"),
		"comparatifs/plume-vs-vieux-bot.md": file("---\ntitle: Plume ou Vieux Bot ?\ntool_a: plume\ntool_b: vieux-bot\nwinner: plume\nwinner_note: Vivant.\nupdated_at: 2026-10-20\ncanonical_url: https://palmares.example/c\n---\n"),
	}
}

const validFeed = `{"type":"feed","format":1,"updated_at":"2026-11-10"}
{"type":"category","slug":"code","label":"Code"}
{"type":"category","slug":"voix","label":"Voix"}
{"type":"tool","slug":"plume","name":"Plume","domain":"plume.example","category":"code","icp":"mixte","pricing":"freemium","price":"20 €/mois","score":8.4,"tagline":"Écrire : vite et bien","canonical_url":"https://palmares.example/plume","alternatives_url":"https://palmares.example/plume/alternatives","updated_at":"2026-11-02","sections":[{"section":"verdict","text":"Un texte.\n\n- une liste"},{"section":"prix","text":"Un autre."}],"price_history":[{"changed_at":"2026-05-01","pricing":"freemium","price":"20 €/mois","previous_pricing":"gratuit","previous_price":"0 €/mois"}]}
{"type":"comparatif","slug":"plume-vs-vieux-bot","title":"Plume ou Vieux Bot ?","tool_a":"plume","tool_b":"vieux-bot","winner":"plume","winner_note":"Vivant.","updated_at":"2026-10-20","canonical_url":"https://palmares.example/c"}
{"type":"cimetiere","slug":"vieux-bot","name":"Vieux Bot","category":"code","reason":"acquis","retired_at":"2026-03-14","note":"Parti."}
`

// replace changes a file; with an empty old text, it creates or replaces it.
func replace(t *testing.T, files fstest.MapFS, name, from, to string) fstest.MapFS {
	t.Helper()
	if from != "" {
		before := string(files[name].Data)
		check.MustTrue(t, strings.Contains(before, from), "%s has no %q", name, from)
		to = strings.Replace(before, from, to, 1)
	}
	files[name] = &fstest.MapFile{Data: []byte(to)}
	return files
}

// TestSpellings reads spellings of the same catalog.
func TestSpellings(t *testing.T) {
	const plume = "tools/plume.md"
	for name, change := range map[string][3]string{
		"as it is":               {"README.md", "", "# Anything"},
		"hidden file":            {"tools/.plume.md.swp", "", "x"},
		"hidden folder":          {".git/config", "", "x"},
		"other folder":           {"assets/logo.svg", "", "x"},
		"other file":             {"tools.json", "", "x"},
		"slug and type":          {plume, "name: Plume", "type: tool\nslug: plume\nname: Plume"},
		"comments":               {plume, "price: 20 €/mois\npricing", "# Checked.\nprice: 20 €/mois # monthly\npricing"},
		"quotation marks":        {plume, "price: 20 €/mois\npricing", "price: '20 €/mois'\npricing"},
		"quoted date":            {plume, "updated_at: 2026-11-02", `updated_at: "2026-11-02"`},
		"Windows line ends":      {plume, "", strings.ReplaceAll(string(valid()[plume].Data), "\n", "\r\n")},
		"no line end at the end": {plume, "autre.\n", "autre."},
		"list of sections first": {plume, "price_history:", "sections:\n  - section: verdict\n    text: \"Un texte.\\n\\n- une liste\"\nprice_history:"},
		"null":                   {plume, "score: 8.4", "score: 8.4\navis_url:\nverifiability: null"},
		"flow":                   {"categories.yml", "", "[{slug: code, label: Code}, {label: Voix, slug: voix}]"},
	} {
		files := replace(t, valid(), change[0], change[1], change[2])
		if name == "list of sections first" {
			replace(t, files, plume, "## verdict\n\nUn texte.\n\n- une liste\n", "")
		}
		got := check.Try(export(t, files)).OK(t, name)
		check.Equal(t, got, validFeed, name)
	}
}

func TestErrors(t *testing.T) {
	const plume = "tools/plume.md"
	for _, test := range []struct{ file, from, to, want string }{
		{plume, "20 €/mois\npricing", "20 euros\npricing", `tools/plume.md:4:8: price: must be <amount> €/<period>, such as 20 €/mois (got "20 euros")`},
		{plume, "price: 20 €/mois\npricing", "pirce: 20 €/mois\npricing", "tools/plume.md:1:1: price: is required, but missing\ntools/plume.md:4:1: pirce: is not a known field; did you mean price?"},
		{plume, "score: 8.4", "score: 8,4", `tools/plume.md:8:8: score: must be a number without quotation marks, such as 8.4 (got "8,4")`},
		{plume, "name: Plume", "name: 1984", "tools/plume.md:2:7: name: must be a string (got a number); put it in quotation marks"},
		{plume, "name: Plume", "name: true", "tools/plume.md:2:7: name: must be a string (got true); put it in quotation marks"},
		{plume, "name: Plume", "name: Plume\nname: Plume", "tools/plume.md:2:7: name: is given twice; keep one of them"},
		{plume, "price: 20 €/mois\n    prev", "price: free\n    prev", `tools/plume.md:16:12: price_history[0].price: must be <amount> €/<period>, such as 20 €/mois (got "free")`},
		{plume, "    previous_price: 0 €/mois\n", "", "tools/plume.md:14:5: price_history[0].previous_price: is required, but missing"},
		{plume, "## prix", "## verdict", `tools/plume.md:27:4: sections[1].section: "verdict" is used twice; a tool has each section once`},
		{plume, "Un autre.", "", "tools/plume.md:27:1: sections[1].text: must not be blank"},
		{plume, "## verdict\n", "Bonjour\n\n## verdict\n", "tools/plume.md:21:1: sections: the text must begin with the heading of a section, such as ## verdict"},
		{plume, "category: code", "category: coude", `tools/plume.md:6:11: category: the feed has no category "coude"; add it, or correct the slug`},
		{plume, "name: Plume", "slug: plum\nname: Plume", `tools/plume.md:2:7: slug: must be plume, as the file's place says, or be left out (got "plum")`},
		{plume, "name: Plume", "name: &x Plume", "tools/plume.md:2:7: anchors and aliases (& and *) are not supported; write the value out, or put a text in quotation marks"},
		{plume, "name: Plume", "name: !x Plume", "tools/plume.md:2:7: tags (!) are not supported; put a text in quotation marks"},
		{plume, `"Écrire : vite et bien"`, "Écrire : vite et bien", "tools/plume.md:9:1: is not valid YAML here or just before: put a text with a colon, # or a quotation mark in quotation marks, close those that are open, and indent with spaces"},
		{plume, "---\nname", "name", "tools/plume.md:1:1: must begin with the record's fields between two lines ---"},
		{plume, "", "---\n---\n", "tools/plume.md:2:1: must be fields, one per line, such as name: Plume"},
		{plume, "", "\uFEFF---\n", "tools/plume.md:1:1: starts with a byte order mark; save the file as UTF-8 without one"},
		{plume, "Plume", "Pl\xFFume", "tools/plume.md:2:9: is not valid UTF-8; save the file as UTF-8"},
		{plume, "Un autre.", strings.Repeat("a", 1<<20), "tools/plume.md:1:1: is longer than 1 MiB; shorten it"},
		{plume, "Un autre.", strings.Repeat(`"`, 1<<19), "tools/plume.md:1:1: is longer than 1 MiB as a line of a feed; shorten it"},
		{"tools/Plume.md", "", string(valid()[plume].Data), `tools/Plume.md:1:1: slug: must be words of a-z and 0-9 joined by single hyphens (got "Plume")`},
		{"tools/vieux-bot.md", "", string(valid()[plume].Data), "cimetiere/vieux-bot.md:1:1: slug: is already used at tools/vieux-bot.md:1:1; each slug may appear once"},
		{"tools/plume.txt", "", "x", "tools/plume.txt:1:1: only files named <slug>.md belong here; rename or remove it"},
		{"tools/sub/a.md", "", "x", "tools/sub:1:1: only files named <slug>.md belong here; rename or remove it"},
		{"tool/a.md", "", "x", "tool:1:1: is not read; did you mean tools?"},
		{"categories.yml", "slug: voix", "slug: voix" + strings.Repeat("\n  x: 1", maxFields), "categories.yml:4:3: has more than 200 fields; remove those that a record does not have"},
		{"categories.yaml", "", "x", "categories.yaml:1:1: is not read; did you mean categories.yml?"},
		{"categories.yml", "  label: Voix", "  lable: Voix", "categories.yml:4:3: category \"voix\": label: is required, but missing\ncategories.yml:5:3: lable: is not a known field; did you mean label?"},
		{"categories.yml", "", "code: Code", "categories.yml:1:1: must be a list; begin each category with a hyphen, such as - slug: code"},
		{"categories.yml", "slug: voix", "slug: code", "categories.yml:4:9: slug: is already used at categories.yml:2:9; each slug may appear once"},
		{"categories.yml", "- slug: voix\n  label: Voix\n", "- voix\n", "categories.yml:4:3: must be fields, one per line, such as name: Plume"},
		{"catalog.yml", "format: 1", "format: 2", "catalog.yml:1:9: format: must be 1 (got 2)"},
		{"catalog.yml", "2026-11-10", "2026-11-31", `catalog.yml:2:13: updated_at: must be a calendar date as YYYY-MM-DD (got "2026-11-31")`},
		{"catalog.yml", "", "a: b: c", "catalog.yml:1:1: is not valid YAML here or just before: put a text with a colon, # or a quotation mark in quotation marks, close those that are open, and indent with spaces"},
		{"cimetiere/vieux-bot.md", "note: Parti.\n---\n", "note: Parti.\n---\n\nBonjour\n", "cimetiere/vieux-bot.md:8:1: only tools have text after the fields; remove it"},
	} {
		_, err := export(t, replace(t, valid(), test.file, test.from, test.to))
		want := strings.ReplaceAll(test.want, `category "voix": `, "")
		check.Equal(t, fmt.Sprint(err), want, "%s: %.80q instead of %q", test.file, test.to, test.from)
	}
}

// TestManyErrors checks that errors in several files are listed together, at most 100.
func TestManyErrors(t *testing.T) {
	files := valid()
	replace(t, files, "catalog.yml", "2026-11-10", "soon")
	replace(t, files, "tools/plume.md", "name: Plume", "name: &x Plume")
	replace(t, files, "cimetiere/vieux-bot.md", "acquis", "perdu")
	_, err := export(t, files)
	check.True(t, err != nil && strings.Count(err.Error(), "\n") == 2 && !strings.Contains(err.Error(), "no tool"), "got %v, want three errors, without those that follow from them", err)
	for i := range 150 {
		replace(t, files, fmt.Sprintf("tools/t%d.md", i), "", "x")
	}
	if _, err := export(t, files); err == nil || strings.Count(err.Error(), "\n") != 100 || !strings.HasSuffix(err.Error(), "only the first 100 faults are shown") {
		t.Errorf("got %v, want 100 errors", err)
	}
}

// An import reads changed records a second time, which must be those that it checked.
func TestRecordsAreReadOnce(t *testing.T) {
	files := valid()
	source := check.Try(Open(files)).OK(t)
	check.Try(feed.Read(t.Context(), source, func(int, record.Record) {})).OK(t)
	for name := range files {
		files[name] = &fstest.MapFile{Data: []byte("changed")}
	}
	var got []string
	selected := feed.Selection{Types: []string{record.TypeTool, record.TypeRetired}, Slugs: map[string]string{"plume": "", "plume-vs-vieux-bot": ""}}
	err := source.Read(t.Context(), selected, nil, func(item *feed.Item) (bool, error) {
		got = append(got, fmt.Sprintf("%d %s %d", item.Number, item.Type, item.Size))
		return true, nil
	})
	check.OK(t, err)
	check.Slices(t, got, []string{"4 tool 573"})
}

func TestNotACatalog(t *testing.T) {
	files := valid()
	delete(files, "catalog.yml")
	_, err := Open(files)
	check.Equal(t, err, ErrNotCatalog)
	files = valid()
	delete(files, "categories.yml")
	_, err = export(t, files)
	check.Contains(t, fmt.Sprint(err), "categories.yml:1:1: is missing")
}

// TestLinks checks that symbolic links are not followed, wherever they lead.
func TestLinks(t *testing.T) {
	dir := write(t, nil)
	outside := filepath.Join(t.TempDir(), "secret.md")
	check.OK(t, os.WriteFile(outside, valid()["tools/plume.md"].Data, 0o644))
	check.OK(t, os.Symlink(outside, filepath.Join(dir, "tools", "plume.md")))
	check.OK(t, os.RemoveAll(filepath.Join(dir, "cimetiere")))
	check.OK(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "cimetiere")))
	_, err := export(t, os.DirFS(dir))
	const what = ":1:1: is a symbolic link, which is not followed; replace it with what it refers to"
	check.Equal(t, fmt.Sprint(err), "cimetiere"+what+"\ntools/plume.md"+what)
}

// TestLinkMadeMeanwhile replaces a file by a link out of the folder after it was listed.
func TestLinkMadeMeanwhile(t *testing.T) {
	dir := onDisk(t)
	outside := filepath.Join(t.TempDir(), "secret.md")
	check.OK(t, os.WriteFile(outside, valid()["tools/plume.md"].Data, 0o644))
	root := check.Try(os.OpenRoot(dir)).OK(t)
	defer root.Close()
	source := check.Try(Open(root.FS())).OK(t)
	err := source.Read(t.Context(), feed.Selection{Types: record.Types}, nil, func(item *feed.Item) (bool, error) {
		if item.Number == 1 {
			name := filepath.Join(dir, "tools", "plume.md")
			check.OK(t, os.Remove(name))
			check.OK(t, os.Symlink(outside, name))
		}
		return true, nil
	})
	check.Contains(t, fmt.Sprint(err), "tools/plume.md: path escapes from parent")
}

func TestWriterRejectsFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	check.OK(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	for _, empty := range []string{dir, filepath.Join(dir, "new")} {
		check.Try(NewWriter(empty, record.Header{})).OK(t)
	}
	if _, err := NewWriter(dir, record.Header{}); err != ErrNotEmpty { // it has folders now
		t.Errorf("got %v, want %v", err, ErrNotEmpty)
	}
}

func TestComments(t *testing.T) {
	files := replace(t, valid(), "tools/plume.md", "price: 20 €/mois\npricing", "  # lint:disable price -- checked\nprice: 20 €/mois\npricing")
	source := check.Try(Open(files)).OK(t)
	number := 0
	check.Try(feed.Read(t.Context(), source, func(n int, rec record.Record) {
		if rec.RecordType() == record.TypeTool && rec.RecordSlug() == "plume" {
			number = n
		}
	})).OK(t)
	got := source.Comments(number)
	check.Must(t, len(got), 1, got)
	check.Equal(t, got[0], feed.Comment{Line: 4, Text: "lint:disable price -- checked"})
}

// FuzzConvert checks that any front matter is read or rejected, and that what can be read
// can be written and read again.
func FuzzConvert(f *testing.F) {
	for _, file := range valid() {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := valid()
		files["tools/plume.md"] = &fstest.MapFile{Data: data}
		got, err := export(t, files)
		if err != nil {
			return
		}
		var records []record.Record
		check.Try(feed.Read(t.Context(), feed.NewLines(strings.NewReader(got)), func(_ int, rec record.Record) { records = append(records, rec) })).OK(t)
		again := check.Try(export(t, os.DirFS(write(t, records)))).OK(t)
		check.Equal(t, again, got)
	})
}

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
		name := check.Try(New(dir, recordType, slug, "2026-11-17")).OK(t)
		path := filepath.Join(dir, name)
		text := check.Try(os.ReadFile(path)).OK(t)
		_, err := export(t, os.DirFS(dir))
		check.True(t, err != nil && strings.Count(err.Error(), name) == strings.Count(lines, "\n"), "%s: got %v, want an error for each field to fill in", name, err)
		filled := string(text)
		for line := range strings.Lines(lines) {
			field, _, _ := strings.Cut(line, ":")
			check.Contains(t, filled, "\n"+field+": \"\"\n", "%s: %s", name, text)
			filled = strings.Replace(filled, field+": \"\"\n", line, 1)
		}
		// Every optional field is there as a comment that needs only a value.
		for _, field := range record.FieldNames(recordType) {
			check.True(t, field == "slug" || strings.Contains(filled, "\n"+field+": ") || strings.Contains(filled, "\n# "+field+":\n"), "%s: got\n%s\nwant field %s", name, text, field)
		}
		check.OK(t, os.WriteFile(path, []byte(filled), 0o644))
		got := check.Try(export(t, os.DirFS(dir))).OK(t, name)
		check.Contains(t, got, `"slug":"`+slug+`"`, name)
		check.Contains(t, got, `_at":"2026-11-17"`, name)
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
	_, err := New(t.TempDir(), record.TypeTool, "x", "2026-11-17")
	check.Equal(t, err, ErrNotCatalog)
}

func TestRetire(t *testing.T) {
	dir := onDisk(t)
	// Errors elsewhere do not matter.
	check.OK(t, os.WriteFile(filepath.Join(dir, "tools", "broken.md"), []byte("x"), 0o644))
	name := check.Try(Retire(t.Context(), dir, &record.Retired{Slug: "plume", Reason: "pivot", RetiredAt: "2026-11-17", Note: "Fin : vraiment."})).OK(t)
	check.OK(t, os.Remove(filepath.Join(dir, "tools", "broken.md")))
	got, err := export(t, os.DirFS(dir))
	want := `{"type":"cimetiere","slug":"plume","name":"Plume","category":"code","reason":"pivot","retired_at":"2026-11-17","note":"Fin : vraiment.","score":8.4}`
	check.OK(t, err)
	check.Equal(t, name, "cimetiere/plume.md")
	check.Contains(t, got, want)
	check.Lacks(t, got, `"type":"tool"`)
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
		_, err := Retire(t.Context(), dir, &record.Retired{Slug: slug, Reason: "pivot", RetiredAt: "2026-11-17"})
		check.Equal(t, fmt.Sprint(err), want, slug)
	}
	if _, err := Retire(t.Context(), dir, &record.Retired{Slug: "plume", RetiredAt: "soon"}); err == nil || !strings.HasPrefix(err.Error(), "--date: must be a calendar date") {
		t.Errorf("got %v, want an error for the date", err)
	}
	_, err := os.Stat(filepath.Join(dir, "tools", "plume.md"))
	check.Equal(t, err, nil)
}

// TestEditsRefuseLinks checks that no command writes or reads behind a link.
func TestEditsRefuseLinks(t *testing.T) {
	dir, outside := onDisk(t), t.TempDir()
	tool := filepath.Join(dir, "tools", "plume.md")
	check.OK(t, os.Rename(tool, filepath.Join(outside, "plume.md")))
	check.OK(t, os.Symlink(filepath.Join(outside, "plume.md"), tool))
	const what = " is a symbolic link, which is not followed; replace it with what it refers to"
	_, err := Retire(t.Context(), dir, &record.Retired{Slug: "plume", Reason: "pivot", RetiredAt: "2026-11-17"})
	check.True(t, err != nil && err.Error() == "tools/plume.md"+what, "got %v, want tools/plume.md%s", err, what)
	check.OK(t, os.RemoveAll(filepath.Join(dir, "tools")))
	check.OK(t, os.Symlink(outside, filepath.Join(dir, "tools")))
	if _, err := New(dir, record.TypeTool, "encre", "2026-11-17"); err == nil || err.Error() != "tools"+what {
		t.Errorf("got %v, want tools%s", err, what)
	}
	files := check.Try(os.ReadDir(outside)).OK(t)
	check.Equal(t, len(files), 1, files)
}
