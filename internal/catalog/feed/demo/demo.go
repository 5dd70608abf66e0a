// Package demo contains the catalog that a new server starts with, and earlier
// editions of it. Every tool in them is fictional.
package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/record"
)

// newest is the folder of the newest edition.
//
//go:embed catalog/*.yml catalog/*/*.md
var newest embed.FS

// older has a file for each older edition, named after its date. The file lists
// its differences from the next edition, in the format of a feed:
//   - a record that the next edition has too gives only the fields that differ
//   - a record that the next edition no longer has is complete
//   - "absent":true marks a record that did not exist yet
//
//go:embed editions
var older embed.FS

// Edition is a dated state of the whole catalog.
type Edition struct {
	Date string // of the feed
	Feed []byte
}

// Catalog returns the newest edition of the demo catalog as a feed.
func Catalog() []byte {
	editions, err := Editions()
	if err != nil {
		panic(err) // tests read all editions
	}
	return editions[len(editions)-1].Feed
}

// Editions returns all editions, oldest first. The last one is Catalog.
var Editions = sync.OnceValues(readEditions)

func readEditions() ([]Edition, error) {
	records := edition{}
	date, err := records.readFolder()
	if err != nil {
		return nil, err
	}
	newest, err := records.feed(date)
	if err != nil {
		return nil, err
	}
	editions := []Edition{{date, newest}}
	files, err := older.ReadDir("editions")
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Backward(files) { // sorted by name, and so by date
		data, err := older.ReadFile(path.Join("editions", file.Name()))
		if err != nil {
			return nil, err
		}
		if date, err = records.apply(data); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		feed, err := records.feed(date)
		if err != nil {
			return nil, err
		}
		editions = append(editions, Edition{date, feed})
	}
	slices.Reverse(editions)
	return editions, nil
}

// edition holds the records of an edition.
type edition map[key]record.Record

// key identifies a record. An active and a retired tool are the same tool.
type key struct{ kind, slug string }

func keyOf(recordType, slug string) key {
	if recordType == record.TypeRetired {
		recordType = record.TypeTool
	}
	return key{recordType, slug}
}

// readFolder reads the newest edition, and returns its date.
func (e edition) readFolder() (date string, err error) {
	root, err := fs.Sub(newest, "catalog")
	if err != nil {
		return "", err
	}
	opened, err := folder.Open(root)
	if err != nil {
		return "", err
	}
	header, err := feed.Read(context.Background(), opened, func(_ int, rec record.Record) { e[keyOf(rec.RecordType(), rec.RecordSlug())] = rec })
	return header.UpdatedAt, err
}

// apply applies the lines of a file to the records, and returns the date in its
// first line.
func (e edition) apply(file []byte) (date string, err error) {
	number := 0
	for line := range bytes.Lines(file) {
		number++
		if number == 1 {
			var header record.Header
			err = json.Unmarshal(line, &header)
			date = header.UpdatedAt
		} else {
			err = e.applyLine(line)
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", number, err)
		}
	}
	return date, nil
}

// applyLine only decodes the line: tests check the files, and an import every rule.
func (e edition) applyLine(line []byte) error {
	var given struct {
		Type   string `json:"type"`
		Slug   string `json:"slug"`
		Absent bool   `json:"absent"`
	}
	if err := json.Unmarshal(line, &given); err != nil {
		return err
	}
	id := keyOf(given.Type, given.Slug)
	if given.Absent {
		delete(e, id)
		return nil
	}
	if e[id] == nil || e[id].RecordType() != given.Type {
		e[id] = record.New(given.Type)
	}
	return json.Unmarshal(line, e[id]) // fields that the line does not have stay
}

// feed writes the edition in the order of an export.
func (e edition) feed(date string) ([]byte, error) {
	var buf bytes.Buffer
	out := feed.NewWriter(&buf, date)
	for _, recordType := range record.Types {
		for _, id := range slices.SortedFunc(maps.Keys(e), func(a, b key) int { return strings.Compare(a.slug, b.slug) }) {
			if e[id].RecordType() == recordType {
				out.Write(e[id])
			}
		}
	}
	err := out.Flush()
	return buf.Bytes(), err
}
