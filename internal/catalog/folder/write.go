package folder

import (
	"bytes"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/record"
)

// ErrNotEmpty means that a folder to write into has files.
var ErrNotEmpty = errors.New("is not empty; name a new folder")

// Writer writes a catalog folder.
type Writer struct {
	root       *os.Root
	header     record.Header
	categories []byte
}

// NewWriter starts writing into a folder that does not exist or is empty, except for hidden
// files, such as those of a new repository. Otherwise it returns ErrNotEmpty.
func NewWriter(dir string, header record.Header) (*Writer, error) {
	if err := checkEmpty(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range order {
		if err := root.Mkdir(folder, 0o755); err != nil {
			_ = root.Close()
			return nil, err
		}
	}
	return &Writer{root: root, header: header}, nil
}

func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }) {
		return ErrNotEmpty
	}
	return nil
}

// Write writes a record.
func (w *Writer) Write(rec record.Record) error {
	if category, ok := rec.(*record.Category); ok {
		w.categories = appendItem(w.categories, record.Encode(category), "")
		return nil
	}
	return w.root.WriteFile(fileName(rec.RecordType(), rec.RecordSlug()), Format(rec), 0o644)
}

// Close writes the files that only a complete folder has. The readme is for its editors.
func (w *Writer) Close(readme []byte) error {
	if len(w.categories) == 0 {
		w.categories = []byte("[]\n")
	}
	header := appendFields(nil, jsonDecoder(record.Encode(w.header)), "", "")
	return errors.Join(
		w.root.WriteFile(categoriesFile, w.categories, 0o644),
		w.root.WriteFile("README.md", readme, 0o644),
		// Last: a folder without this file is not a catalog.
		w.root.WriteFile(headerFile, header, 0o644),
		w.root.Close(),
	)
}

// fileName returns the path of a record's file in a folder.
func fileName(recordType, slug string) string {
	for _, folder := range order {
		if folders[folder] == recordType {
			return path.Join(folder, slug+extension)
		}
	}
	return categoriesFile
}

// Format returns the content of the file of a record that is not a category.
func Format(rec record.Record) []byte {
	var text []record.Section
	if tool, ok := rec.(*record.Tool); ok {
		fields := *tool
		fields.Sections, text = splitSections(tool.Sections)
		rec = &fields
	}
	file := appendFields([]byte("---\n"), jsonDecoder(record.Encode(rec)), "", "slug")
	file = append(file, "---\n"...)
	for _, s := range text {
		file = append(file, "\n"+heading+s.Section+"\n\n"+s.Text+"\n"...)
	}
	return file
}

// splitSections returns the sections that must be in a list of the fields, because a text
// cannot have them unchanged, and the others. They keep their order, so sections before one
// that must be in the list are in it too.
func splitSections(sections []record.Section) (list, text []record.Section) {
	for i, s := range slices.Backward(sections) {
		if !isPlainText(s.Section) || strings.Contains(s.Section, "\n") || !isPlainText(s.Text) || strings.HasPrefix(s.Text, heading) || strings.Contains(s.Text, "\n"+heading) {
			return sections[:i+1], sections[i+1:]
		}
	}
	return nil, sections
}

func isPlainText(s string) bool { return s == strings.TrimSpace(s) && !strings.Contains(s, "\r") }

func jsonDecoder(object []byte) *jsontext.Decoder {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	_, _ = dec.ReadToken() // the brace or bracket: the program wrote it
	return dec
}

// appendFields appends the fields of a JSON object as YAML, except one.
func appendFields(to []byte, dec *jsontext.Decoder, indent, except string) []byte {
	for dec.PeekKind() != '}' {
		token, _ := dec.ReadToken()
		name := token.String()
		value, _ := dec.ReadValue()
		if name == except {
			continue
		}
		to = append(to, indent+name+":"...)
		switch value.Kind() {
		case '{':
			to = appendFields(append(to, '\n'), jsonDecoder(value), indent+"  ", "")
		case '[':
			to = append(to, '\n')
			for items := jsonDecoder(value); items.PeekKind() != ']'; {
				item, _ := items.ReadValue()
				to = appendItem(to, item, indent+"  ")
			}
		case '"':
			unquoted, _ := jsontext.AppendUnquote(nil, value)
			to = append(to, " "+formatText(string(unquoted))+"\n"...)
		default:
			to = append(append(append(to, ' '), value...), '\n')
		}
	}
	return to
}

// appendItem appends a JSON object as an item of a list.
func appendItem(to []byte, item jsontext.Value, indent string) []byte {
	start := len(to)
	to = appendFields(to, jsonDecoder(item), indent+"  ", "")
	copy(to[start+len(indent):], "-") // instead of the first field's indentation
	return to
}

// These texts are read as texts without quotation marks. Dates are too: read.go ensures that.
var (
	date       = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	price      = regexp.MustCompile(`^[0-9]+([.,][0-9]+)? €/[a-z]+$`)
	otherTypes = regexp.MustCompile(`(?i)^(y|yes|n|no|on|off|true|false|null|nan)$`)
)

// formatText formats a text as YAML, without quotation marks if it cannot be anything else.
func formatText(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	switch {
	case date.MatchString(s) || price.MatchString(s):
		return s
	case !unicode.IsLetter(first), strings.ContainsFunc(s, func(r rune) bool { return !isVisible(r) }), strings.HasSuffix(s, " "), otherTypes.MatchString(s),
		strings.Contains(s, ": "), strings.HasSuffix(s, ":"), strings.Contains(s, " #"):
		return quoteYAML(s)
	}
	return s
}

// isVisible reports whether a rune may be in a file as it is: French uses spaces that Go
// does not print.
func isVisible(r rune) bool { return unicode.IsPrint(r) || r == '\u00A0' || r == '\u202F' }

// quoteYAML quotes a text. The escapes of Go are among those of YAML.
func quoteYAML(s string) string {
	quoted := []byte{'"'}
	for _, r := range s {
		if isVisible(r) && r != '"' && r != '\\' {
			quoted = utf8.AppendRune(quoted, r)
		} else {
			escaped := strconv.Quote(string(r))
			quoted = append(quoted, escaped[1:len(escaped)-1]...)
		}
	}
	return string(append(quoted, '"'))
}
