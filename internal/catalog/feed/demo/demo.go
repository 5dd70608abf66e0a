// Package demo contains the catalog that a new server starts with, and earlier
// editions of it. Every tool in them is fictional.
package demo

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// Catalog is the newest edition of the demo catalog as a feed.
//
//go:embed catalog.ndjson
var Catalog []byte

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

// Editions returns all editions, oldest first. The last one is Catalog.
func Editions() ([]Edition, error) {
	records := edition{}
	date, err := records.apply(Catalog)
	if err != nil {
		return nil, fmt.Errorf("catalog.ndjson: %w", err)
	}
	editions := []Edition{{date, Catalog}}
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

func (e edition) applyLine(line []byte) error {
	var given struct {
		Type   string `json:"type"`
		Slug   string `json:"slug"`
		Absent bool   `json:"absent"`
	}
	fields := map[string]jsontext.Value{}
	if err := json.Unmarshal(line, &given); err != nil {
		return err
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	delete(fields, "type")
	if !slices.Contains(record.Types, given.Type) {
		return fmt.Errorf("%q is not a type of record", given.Type)
	}
	id := key{given.Type, given.Slug}
	if given.Type == record.TypeRetired {
		id.kind = record.TypeTool
	}
	next := e[id]
	if next != nil && next.RecordType() != given.Type {
		next = nil
	}
	if given.Absent {
		if next == nil || len(fields) != 2 {
			return fmt.Errorf("%s %q: an absent record must exist in the next edition, and the line must only have its slug", given.Type, given.Slug)
		}
		delete(e, id)
		return nil
	}
	if next != nil {
		all := map[string]jsontext.Value{}
		if err := json.Unmarshal(record.Encode(next), &all); err != nil {
			return err
		}
		maps.Copy(all, fields)
		fields = all
	}
	rec, err := readRecord(given.Type, fields)
	if err != nil {
		return fmt.Errorf("%s %q: %w", given.Type, given.Slug, err)
	}
	e[id] = rec
	return nil
}

// readRecord checks the fields of a record as an import does.
func readRecord(recordType string, fields map[string]jsontext.Value) (record.Record, error) {
	rec := record.New(recordType)
	dec := record.NewDecoder(record.Encode(fields))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var problems []string
	if err := record.Read(dec, rec, func(path, problem string) { problems = append(problems, path+": "+problem) }); err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return rec, nil
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
