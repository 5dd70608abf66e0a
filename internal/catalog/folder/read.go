package folder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/s2"
	"go.yaml.in/yaml/v3"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// ErrNotCatalog means that a folder is not a catalog.
var ErrNotCatalog = errors.New("is not a catalog folder: it has no " + headerFile + "; name a folder that palmares export --to wrote")

// maxFile is the maximum size of a file. A record must fit into a line of a feed, and
// categories are few.
const maxFile = feed.MaxLine

// Read reads the files, in the order of an export.
func (f *Folder) Read(ctx context.Context, selected feed.Selection, progress func(done, total int64), each func(*feed.Item) (bool, error)) error {
	if selected.Slugs != nil && f.records != nil {
		return f.readAgain(ctx, selected, each)
	}
	f.problems = nil
	names, err := f.list()
	if err != nil {
		return err
	}
	if _, found := names[headerFile]; !found {
		return ErrNotCatalog
	}
	r := &reader{Folder: f, selected: selected, each: each}
	if len(selected.Types) == len(record.Types) && selected.Slugs == nil {
		f.places, f.records, r.remember = nil, nil, true
	}
	steps := []func() error{r.header}
	switch _, found := names[categoriesFile]; {
	case f.only != "":
		f.problems = nil // those of other files do not matter
	case found:
		steps = append(steps, r.categories)
	default:
		f.report(feed.Position{File: categoriesFile, Line: 1, Column: 1}, "", "is missing; it lists the categories")
	}
	for _, folder := range order {
		for _, name := range names[folder] {
			if f.only == "" || f.only == name {
				steps = append(steps, func() error { return r.record(folders[folder], name) })
			}
		}
	}
	for i, step := range steps {
		if err := cmp.Or(ctx.Err(), step(), r.flush()); err != nil {
			return err
		}
		if progress != nil {
			progress(int64(i+1), int64(len(steps)))
		}
	}
	return nil
}

// readAgain passes on selected records that were read before.
func (f *Folder) readAgain(ctx context.Context, selected feed.Selection, each func(*feed.Item) (bool, error)) error {
	var buf []byte
	for _, known := range f.records {
		if _, wanted := selected.Slugs[known.slug]; !wanted || !slices.Contains(selected.Types, known.recordType) {
			continue
		}
		var err error
		if buf, err = s2.Decode(buf[:cap(buf)], known.fields); err == nil {
			err = pass(each, known.number, known.recordType, buf)
		}
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
	}
	return nil
}

// pass passes on a record, whose fields are JSON.
func pass(each func(*feed.Item) (bool, error), number int, recordType string, fields []byte) error {
	dec := record.NewDecoder(fields)
	_, _ = dec.ReadToken() // the brace
	_, err := each(&feed.Item{Number: number, Type: recordType, Fields: dec, Size: len(fields)})
	return err
}

// reader reads the files once.
type reader struct {
	*Folder
	selected feed.Selection
	each     func(*feed.Item) (bool, error)
	remember bool // where values are
	number   int  // of the last item
	buf      []byte
}

// flush passes on the problems of files.
func (r *reader) flush() error {
	for _, problem := range r.problems {
		if _, err := r.each(&feed.Item{Problem: &problem}); err != nil {
			return err
		}
	}
	r.problems = nil
	return nil
}

// item passes on a record, whose fields are JSON without braces, each after a comma. Only
// records with files of their own have a slug here.
func (r *reader) item(at *place, recordType, slug string, fields []byte) error {
	r.buf = append(append(append(r.buf[:0], '{'), bytes.TrimPrefix(fields, []byte(","))...), '}')
	if line := len(r.buf) + len(`"type":"",`) + len(recordType); line > feed.MaxLine {
		r.report(feed.Position{File: at.at.File, Line: 1, Column: 1}, "", "is longer than 1 MiB as a line of a feed; shorten it")
		return nil
	}
	if r.number++; r.remember {
		r.places = append(r.places, at)
	}
	if r.remember && slug != "" {
		r.records = append(r.records, encoded{r.number, recordType, slug, bytes.Clone(s2.Encode(nil, r.buf))})
	}
	err := pass(r.each, r.number, recordType, r.buf)
	if !r.selected.LocateValid { // from here on, errors are about several records
		at.marks = slices.Clone(slices.DeleteFunc(at.marks, func(m mark) bool { return !slices.Contains(shared, m.path) }))
	}
	return err
}

// shared are the fields whose errors are found after their record was read.
var shared = []string{"slug", "category", "tool_a", "tool_b", "price_history"}

// header reads the first item. There must be one, so if the file has none, it is one that
// nothing else can be wrong with.
func (r *reader) header() error {
	file, err := r.read(headerFile, false)
	if err != nil {
		return err
	}
	fields := []byte(`"format":1,"updated_at":"0001-01-01"`)
	if file == nil {
		file = &parsedFile{Folder: r.Folder, name: headerFile}
	} else if file.mapping(file.fields) {
		fields = file.appendFields(nil, file.fields, nil, map[string]string{"type": record.TypeFeed})
	}
	return r.item(r.newPlace(file, record.TypeFeed, file.fields, nil), record.TypeFeed, "", fields)
}

func (r *reader) categories() error {
	if !slices.Contains(r.selected.Types, record.TypeCategory) {
		return nil
	}
	file, err := r.read(categoriesFile, false)
	if err != nil || file == nil || file.fields == nil { // nil for a file with comments only
		return err
	}
	if file.fields.Kind != yaml.SequenceNode {
		file.report(file.at(file.fields), "", "must be a list; begin each category with a hyphen, such as - slug: code")
		return nil
	}
	for _, category := range file.fields.Content {
		if !file.mapping(category) {
			continue
		}
		fields := file.appendFields(nil, category, nil, map[string]string{"type": record.TypeCategory})
		if err := r.item(r.newPlace(file, record.TypeCategory, category, nil), record.TypeCategory, "", fields); err != nil {
			return err
		}
	}
	return nil
}

// record reads a file. The name of the file is the slug.
func (r *reader) record(recordType, name string) error {
	slug := strings.TrimSuffix(path.Base(name), extension)
	if _, wanted := r.selected.Slugs[slug]; !slices.Contains(r.selected.Types, recordType) || r.selected.Slugs != nil && !wanted {
		return nil
	}
	file, err := r.read(name, true)
	if err != nil || file == nil || !file.mapping(file.fields) {
		return err
	}
	fields := append([]byte(`"slug":`), quoteJSON(slug)...)
	var list *yaml.Node // of sections, if it is one
	var sections []section
	if recordType == record.TypeTool {
		var ok bool
		if sections, ok = file.sections(); !ok {
			return nil
		}
		if list = file.value("sections"); list != nil && list.Kind != yaml.SequenceNode {
			list = nil
		}
		fields = file.appendSections(fields, list, sections)
	} else if len(bytes.TrimSpace(file.body)) > 0 {
		file.report(feed.Position{File: name, Line: file.bodyLine, Column: 1}, "", "only tools have text after the fields; remove it")
	}
	fields = file.appendFields(fields, file.fields, list, map[string]string{"type": recordType, "slug": slug})
	return r.item(r.newPlace(file, recordType, file.fields, sections), recordType, slug, fields)
}

// parsedFile is the content of a file.
type parsedFile struct {
	*Folder
	name      string
	firstLine int        // of the YAML, minus one
	fields    *yaml.Node // nil if it is empty
	body      []byte     // what follows the fields
	bodyLine  int        // its first line
	comments  []feed.Comment
}

// read reads and parses a file. It reports why it cannot be parsed, and returns nil.
func (f *Folder) read(name string, frontMatter bool) (*parsedFile, error) {
	opened, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	_ = opened.Close()
	if err != nil {
		return nil, err
	}
	s := &parsedFile{Folder: f, name: name}
	at := feed.Position{File: name, Line: 1, Column: 1}
	switch {
	case len(data) > maxFile:
		f.report(at, "", "is longer than 1 MiB; shorten it")
		return nil, nil
	case bytes.HasPrefix(data, []byte("\uFEFF")):
		f.report(at, "", "starts with a byte order mark; save the file as UTF-8 without one")
		return nil, nil
	case !utf8.Valid(data):
		at.Line, at.Column = invalidUTF8(data)
		f.report(at, "", "is not valid UTF-8; save the file as UTF-8")
		return nil, nil
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if frontMatter {
		var ok bool
		if data, s.body, ok = splitFrontMatter(data); !ok {
			f.report(at, "", "must begin with the record's fields between two lines ---")
			return nil, nil
		}
		s.firstLine, s.bodyLine = 1, 3+bytes.Count(data, []byte("\n"))
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if comment, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("#")); ok {
			s.comments = append(s.comments, feed.Comment{Line: i + 1 + s.firstLine, Text: strings.TrimSpace(string(comment))})
		}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		f.report(feed.Position{File: name, Line: yamlLine(err) + s.firstLine, Column: 1}, "",
			"is not valid YAML here or just before: put a text with a colon, # or a quotation mark in quotation marks, close those that are open, and indent with spaces")
		return nil, nil
	}
	if len(document.Content) > 0 {
		s.fields = document.Content[0]
		if problem := s.unsupported(s.fields); problem {
			return nil, nil
		}
	}
	return s, nil
}

// splitFrontMatter splits a file at its second line of three hyphens.
func splitFrontMatter(data []byte) (fields, body []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return nil, nil, false
	}
	for end := 0; ; {
		line, _, more := bytes.Cut(rest[end:], []byte("\n"))
		if string(line) == "---" {
			return rest[:end], rest[min(len(rest), end+len("---\n")):], true
		}
		if !more {
			return nil, nil, false
		}
		end += len(line) + 1
	}
}

func invalidUTF8(data []byte) (line, column int) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column
		case r == '\n':
			line, column = line+1, 0
		}
		column, data = column+1, data[size:]
	}
	return line, column
}

var lineInError = regexp.MustCompile(`line (\d+)`)

// yamlLine returns the line that an error of the YAML library names.
func yamlLine(err error) int {
	if found := lineInError.FindStringSubmatch(err.Error()); found != nil {
		line, _ := strconv.Atoi(found[1])
		return max(line, 1)
	}
	return 1
}

// maxFields is how many fields an object may have: many more than any record.
const maxFields = 200

// unsupported reports parts of YAML that a feed has no equivalent for, and that could
// make a small file large.
func (s *parsedFile) unsupported(node *yaml.Node) (found bool) {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		s.report(s.at(node), "", "anchors and aliases (& and *) are not supported; write the value out, or put a text in quotation marks")
		return true
	case node.Kind == yaml.MappingNode && len(node.Content) > 2*maxFields:
		s.report(s.at(node), "", fmt.Sprintf("has more than %d fields; remove those that a record does not have", maxFields))
		return true
	case node.Style&yaml.TaggedStyle != 0:
		s.report(s.at(node), "", "tags (!) are not supported; put a text in quotation marks")
		return true
	}
	for _, child := range node.Content {
		found = s.unsupported(child) || found
	}
	return found
}

func (s *parsedFile) at(node *yaml.Node) feed.Position {
	return feed.Position{File: s.name, Line: node.Line + s.firstLine, Column: node.Column}
}

// mapping reports whether a node has fields.
func (s *parsedFile) mapping(node *yaml.Node) bool {
	if node != nil && node.Kind == yaml.MappingNode {
		return true
	}
	at := feed.Position{File: s.name, Line: 1 + s.firstLine, Column: 1}
	if node != nil {
		at = s.at(node)
	}
	s.report(at, "", "must be fields, one per line, such as name: Plume")
	return false
}

// value returns the value of a field, or nil.
func (s *parsedFile) value(name string) *yaml.Node {
	for i := 0; i < len(s.fields.Content); i += 2 {
		if s.fields.Content[i].Value == name {
			return s.fields.Content[i+1]
		}
	}
	return nil
}

// appendFields appends the fields of a mapping as JSON, each after a comma. It leaves out
// one value, and fields that are implied, if they have no other value.
func (s *parsedFile) appendFields(to []byte, mapping, leaveOut *yaml.Node, implied map[string]string) []byte {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		if value == leaveOut {
			continue
		}
		if want, ok := implied[key.Value]; ok {
			if value.Value != want {
				s.report(s.at(value), key.Value, fmt.Sprintf("must be %s, as the file's place says, or be left out (got %s)", want, record.Quote(value.Value)))
			}
			continue
		}
		to = append(append(to, ','), quoteJSON(key.Value)...)
		to = s.appendJSON(append(to, ':'), value)
	}
	return to
}

// jsonNumber matches numbers that JSON and YAML spell alike.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (s *parsedFile) appendJSON(to []byte, node *yaml.Node) []byte {
	switch node.Kind {
	case yaml.MappingNode:
		fields := s.appendFields(nil, node, nil, nil)
		if len(fields) > 0 {
			fields = fields[1:]
		}
		return append(append(append(to, '{'), fields...), '}')
	case yaml.SequenceNode:
		to = append(to, '[')
		for i, item := range node.Content {
			if i > 0 {
				to = append(to, ',')
			}
			to = s.appendJSON(to, item)
		}
		return append(to, ']')
	}
	switch tag := node.ShortTag(); {
	case tag == "!!null":
		return append(to, "null"...)
	case tag == "!!bool" && (node.Value == "true" || node.Value == "false"):
		return append(to, node.Value...)
	case (tag == "!!int" || tag == "!!float") && jsonNumber.MatchString(node.Value):
		return append(to, node.Value...)
	}
	return append(to, quoteJSON(node.Value)...) // also dates, which are texts in a feed
}

func quoteJSON(s string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, s) // files are valid UTF-8
	return quoted
}

// section is a section of a review, as it is in the text.
type section struct {
	name, text     string
	line, textLine int
}

const heading = "## "

// sections splits the text after the fields at its headings. It reports text before the
// first one.
func (s *parsedFile) sections() (sections []section, ok bool) {
	number, start, end := s.bodyLine-1, 0, 0 // of the current line; of the section's text
	finish := func() {
		if len(sections) > 0 {
			sections[len(sections)-1].text = string(bytes.TrimSpace(s.body[start:end]))
		}
	}
	for line := range bytes.Lines(s.body) {
		number++
		name, isHeading := bytes.CutPrefix(line, []byte(heading))
		switch blank := len(bytes.TrimSpace(line)) == 0; {
		case isHeading:
			finish()
			start = end + len(line)
			sections = append(sections, section{name: string(bytes.TrimSpace(name)), line: number, textLine: number})
		case blank:
		case len(sections) == 0:
			s.report(feed.Position{File: s.name, Line: number, Column: 1}, "sections", "the text must begin with the heading of a section, such as "+heading+"verdict")
			return nil, false
		case sections[len(sections)-1].textLine == sections[len(sections)-1].line:
			sections[len(sections)-1].textLine = number
		}
		end += len(line)
	}
	finish()
	return sections, true
}

// appendSections appends the field for the sections of a list and of the text.
func (s *parsedFile) appendSections(to []byte, list *yaml.Node, sections []section) []byte {
	if list == nil && len(sections) == 0 {
		return to
	}
	to = append(to, `,"sections":[`...)
	if list != nil {
		for i, item := range list.Content {
			if i > 0 {
				to = append(to, ',')
			}
			to = s.appendJSON(to, item)
		}
	}
	for i, section := range sections {
		if i > 0 || list != nil && len(list.Content) > 0 {
			to = append(to, ',')
		}
		to = append(append(to, `{"section":`...), quoteJSON(section.name)...)
		to = append(append(append(to, `,"text":`...), quoteJSON(section.text)...), '}')
	}
	return append(to, ']')
}
