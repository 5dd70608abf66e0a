package folder

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// place is where the values of an item are.
type place struct {
	at       feed.Position // of the record
	marks    []mark
	comments []feed.Comment // in the fields of the file
}

// mark is the place of the value at a path, such as price_history[0].price.
type mark struct {
	path         string
	line, column int
}

// Locate returns the place of the value at a path of an item; of its field if the field is
// unknown, or of what should have it.
func (f *Folder) Locate(number int, path string) feed.Position {
	if number > len(f.places) {
		return feed.Position{Line: number}
	}
	p := f.places[number-1]
	for path != "" {
		for _, m := range p.marks {
			if m.path == path {
				return feed.Position{File: p.at.File, Line: m.line, Column: m.column}
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return p.at
}

// Comments returns the comments in the fields of the file that an item comes from.
func (f *Folder) Comments(number int) []feed.Comment {
	if number > len(f.places) {
		return nil
	}
	return f.places[number-1].comments
}

// newPlace returns the place of a record: a file or, for a category, an item of a list.
func (r *reader) newPlace(s *parsedFile, recordType string, fields *yaml.Node, sections []section) *place {
	p := &place{at: feed.Position{File: s.name, Line: 1, Column: 1}, comments: s.comments}
	if !r.remember {
		return p
	}
	if recordType == record.TypeCategory {
		p.at = s.at(fields)
	}
	if fields != nil {
		p.mark(s, "", fields, record.FieldNames(recordType))
	}
	listed := 0
	if len(sections) > 0 && s.value("sections") != nil {
		listed = len(s.value("sections").Content)
	}
	for i, found := range sections {
		path := fmt.Sprintf("sections[%d]", listed+i)
		p.marks = append(p.marks, mark{path, found.line, len(heading) + 1}, mark{path + ".text", found.textLine, 1})
	}
	return p
}

// mark adds the places of all values below a node. known are the names of the fields that
// it may have; nil for any.
func (p *place) mark(s *parsedFile, path string, node *yaml.Node, known []string) {
	switch node.Kind {
	case yaml.SequenceNode:
		for i, item := range node.Content {
			p.add(s, fmt.Sprintf("%s[%d]", path, i), item, item)
		}
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			name, at := record.PrintableName(key.Value), value
			if known != nil && !slices.Contains(known, name) {
				at = key
			}
			if path != "" {
				name = path + "." + name
			}
			p.add(s, name, at, value)
		}
	}
}

func (p *place) add(s *parsedFile, path string, at, value *yaml.Node) {
	found := s.at(at)
	p.marks = append(p.marks, mark{path, found.Line, found.Column})
	p.mark(s, path, value, nil)
}
