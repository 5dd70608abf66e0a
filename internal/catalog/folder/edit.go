package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// New writes a file for a new record with its fields and their descriptions, and returns
// its name. Fields without a value are invalid until an editor fills them in.
func New(dir, recordType, slug, today string) (name string, err error) {
	root, err := openCatalog(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name = fileName(recordType, slug)
	if err := checkFree(root, recordType, slug); err != nil {
		return "", err
	}
	return name, writeNew(root, name, template(recordType, slug, today))
}

// openCatalog opens a catalog folder to change it. It refuses symbolic links, as readers
// do; the root refuses those that somebody adds meanwhile and that lead out of the folder.
func openCatalog(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	err = checkLinks(root, append([]string{headerFile}, order...)...)
	if err == nil {
		_, err = root.Stat(headerFile)
	}
	if err == nil {
		return root, nil
	}
	_ = root.Close()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotCatalog
	}
	return nil, err
}

func checkLinks(root *os.Root, names ...string) error {
	for _, name := range names {
		if info, err := root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return errors.New(name + " " + isLink)
		}
	}
	return nil
}

// writeNew writes a file that does not exist, and creates its folder if it is missing.
func writeNew(root *os.Root, name string, content []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return root.WriteFile(name, content, 0o644)
}

// checkFree returns an error if a folder cannot have a new record with a slug.
func checkFree(root *os.Root, recordType, slug string) error {
	if problem := record.CheckSlug(slug); problem != "" {
		return errors.New("slug: " + problem)
	}
	taken := []string{fileName(recordType, slug)}
	if recordType != record.TypeComparison { // active and retired tools share their slugs
		taken = []string{fileName(record.TypeTool, slug), fileName(record.TypeRetired, slug)}
	}
	for _, name := range taken {
		switch _, err := root.Lstat(name); {
		case err == nil:
			return errors.New(name + " exists already; choose another slug, or edit that file")
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// template returns a file with all fields of a type. Optional ones are comments.
func template(recordType, slug, today string) []byte {
	schema := record.FeedSchema(recordType)
	required := schema["required"].([]string)
	values := map[string]string{"updated_at": today, "retired_at": today}
	if a, b, ok := strings.Cut(slug, "-vs-"); ok && recordType == record.TypeComparison {
		values["tool_a"], values["tool_b"] = a, b
	}
	file := []byte("---\n")
	for _, name := range record.FieldNames(recordType) {
		if name == "slug" { // the name of the file
			continue
		}
		property := schema["properties"].(record.Schema)[name].(record.Schema)
		file = fmt.Appendf(file, "# %s", property["description"])
		if allowed, ok := property["enum"].([]string); ok {
			file = fmt.Appendf(file, " One of %s.", strings.Join(allowed, ", "))
		}
		if slices.Contains(required, name) {
			file = fmt.Appendf(file, "\n%s: %s\n", name, formatText(values[name]))
		} else {
			file = fmt.Appendf(file, " Optional.\n# %s:\n", name)
		}
	}
	if recordType == record.TypeTool {
		file = append(file, "# The review follows the next line: a heading such as ## verdict for each section, then its text.\n"...)
	}
	return append(file, "---\n"...)
}

// Retire moves a tool to the retired ones, and returns the name of its new file. The
// record has what the tool does not have.
func Retire(ctx context.Context, dir string, retired *record.Retired) (name string, err error) {
	root, err := openCatalog(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	tool, err := readTool(ctx, root, retired.Slug)
	if err != nil {
		return "", err
	}
	retired.Name, retired.Category, retired.Score = tool.Name, tool.Category, tool.Score
	name = fileName(record.TypeRetired, retired.Slug)
	if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(name + " exists already; remove it, or the file of the tool")
	}
	if problem := record.CheckDate(retired.RetiredAt); problem != "" {
		return "", errors.New("--date: " + problem)
	}
	// First the new file: if the second step fails, both are there, which is an error of the
	// folder, and nothing is lost.
	if err := writeNew(root, name, Format(retired)); err != nil {
		return "", err
	}
	return name, root.Remove(fileName(record.TypeTool, retired.Slug))
}

// readTool reads a tool from its file, whatever is wrong in others.
func readTool(ctx context.Context, root *os.Root, slug string) (tool *record.Tool, err error) {
	name := fileName(record.TypeTool, slug)
	if record.CheckSlug(slug) != "" {
		err = fs.ErrNotExist
	} else if err = checkLinks(root, name); err == nil {
		_, err = root.Stat(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no tool " + record.Quote(slug) + "; its file must be in " + order[0] + "/")
	}
	if err != nil {
		return nil, err
	}
	var invalid *feed.ValidationError
	_, err = feed.Read(ctx, &Folder{files: root.FS(), only: name}, func(_ int, rec record.Record) { tool, _ = rec.(*record.Tool) })
	if tool != nil {
		return tool, nil
	}
	if errors.As(err, &invalid) {
		for _, e := range invalid.List {
			if e.At.File == name {
				return nil, errors.New(e.Error() + "; correct it first")
			}
		}
	}
	return nil, err
}
