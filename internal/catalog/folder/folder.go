// Package folder reads and writes the catalog as a folder with a file for each record,
// which people can edit and review. It is a second spelling of the feed:
//
//	catalog.yml           format and updated_at
//	categories.yml        a list of categories
//	tools/plume.md        the fields of a tool between two lines ---, then its review
//	comparatifs/….md      the fields of a comparison
//	cimetiere/….md        the fields of a retired tool
//
// Folder reads the records for package feed, which checks them (read.go), and remembers
// where their values are (locate.go). Writer writes a folder (write.go).
package folder

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/core/text"
)

// The files and folders of a catalog folder.
const (
	headerFile     = "catalog.yml"
	categoriesFile = "categories.yml"
	extension      = ".md"
)

// isLink is why files are not read or written.
const isLink = "is a symbolic link, which is not followed; replace it with what it refers to"

// folders holds the type of the records in each folder, and order the folders in the order
// of an export.
var (
	order   = []string{"tools", "comparatifs", "cimetiere"}
	folders = map[string]string{order[0]: record.TypeTool, order[1]: record.TypeComparison, order[2]: record.TypeRetired}
)

// Folder is a catalog folder.
type Folder struct {
	files    fs.FS
	only     string // the one record file to read; "" for all
	problems []feed.LineError
	places   []*place  // of the items when all were read
	records  []encoded // then, of the record files
}

// encoded is a record of a file that was read. Parsing a file again would take several
// times as long, and it may have changed.
type encoded struct {
	number           int
	recordType, slug string
	fields           []byte // compressed JSON
}

// Open returns the catalog in a folder. Files on disk should be those of an os.Root, so that
// no link that is made meanwhile leads out of the folder.
func Open(files fs.FS) (*Folder, error) {
	f := &Folder{files: files}
	names, err := f.list()
	if _, found := names[headerFile]; !found && err == nil {
		err = ErrNotCatalog
	}
	return f, err
}

func (f *Folder) report(at feed.Position, path, problem string) {
	f.problems = append(f.problems, feed.LineError{At: at, Path: path, Problem: problem})
}

// list returns the names of the record files, by folder, and reports what does not
// belong there. Hidden files are ignored, and at the top level every other file, because
// a folder is often a repository with files of its own.
func (f *Folder) list() (map[string][]string, error) {
	top, err := fs.ReadDir(f.files, ".")
	if err != nil {
		return nil, err
	}
	known := append([]string{headerFile, categoriesFile}, order...)
	names := map[string][]string{}
	for _, entry := range top {
		name := entry.Name()
		at := feed.Position{File: name, Line: 1, Column: 1}
		switch {
		case strings.HasPrefix(name, "."):
		case !slices.Contains(known, name):
			candidates := order
			if !entry.IsDir() {
				candidates = []string{headerFile, categoriesFile}
			}
			isYAML := strings.HasPrefix(path.Ext(name), ".y")
			if similar := text.Similar(name, candidates, 1); len(similar) == 1 && isYAML != entry.IsDir() {
				f.report(at, "", "is not read; did you mean "+similar[0]+"?")
			}
		case entry.Type()&fs.ModeSymlink != 0:
			f.report(at, "", isLink)
		case folders[name] != "" && !entry.IsDir():
			f.report(at, "", "must be a folder; rename or remove the file")
		case folders[name] == "" && !entry.Type().IsRegular():
			f.report(at, "", "must be a file; rename or remove what is there")
		case folders[name] == "":
			names[name] = nil
		default:
			if names[name], err = f.listRecords(name); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

func (f *Folder) listRecords(folder string) (names []string, err error) {
	entries, err := fs.ReadDir(f.files, folder)
	for _, entry := range entries {
		name := path.Join(folder, entry.Name())
		at := feed.Position{File: name, Line: 1, Column: 1}
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.Type()&fs.ModeSymlink != 0:
			f.report(at, "", isLink)
		case !entry.Type().IsRegular() || path.Ext(name) != extension:
			f.report(at, "", "only files named <slug>"+extension+" belong here; rename or remove it")
		default:
			names = append(names, name)
		}
	}
	return names, err
}
