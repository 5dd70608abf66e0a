package folder

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// Locate returns the place of the value at a path of the record in a line of the feed; of
// its field if the field is unknown, or of what should have it.
func (f *Folder) Locate(line int, path string) feed.Position {
	if line > len(f.lines) { // of a feed that is not this one
		return feed.Position{Line: line}
	}
	file := f.reread(line)
	if file == nil {
		return feed.Position{File: f.lines[line-1].file, Line: 1, Column: 1}
	}
	return file.locate(f.lines[line-1].index, path)
}

// Comments returns the comments in the fields of the file that a line of the feed comes
// from.
func (f *Folder) Comments(line int) []Comment {
	if line > len(f.lines) {
		return nil
	}
	return f.comments[f.lines[line-1].file]
}

// reread reads the file of a line again. It returns nil if the file has changed so that it
// cannot be read.
func (f *Folder) reread(line int) *source {
	name := f.lines[line-1].file
	again := &Folder{files: f.files} // the problems of the file are already known
	file, err := again.read(name, strings.HasSuffix(name, extension))
	if err != nil || file == nil || file.fields == nil {
		return nil
	}
	return file
}

func (s *source) locate(index int, path string) feed.Position {
	node := s.fields
	at := feed.Position{File: s.name, Line: 1, Column: 1}
	if s.name == categoriesFile {
		if node.Kind != yaml.SequenceNode || index >= len(node.Content) {
			return at
		}
		node = node.Content[index]
		at = s.at(node)
	}
	root := node
	for part, rest := nextPart(path); part != ""; part, rest = nextPart(rest) {
		if part == "sections" && node == s.fields {
			if at, ok := s.locateSection(rest); ok {
				return at
			}
		}
		key, value := child(node, part)
		if value == nil {
			return at
		}
		if at = s.at(value); node == root && !slices.Contains(record.FieldNames(recordType(s.name)), part) {
			return s.at(key)
		}
		node = value
	}
	return at
}

// nextPart cuts the first part from a path: price_history from price_history[0].price, then
// [0], then price.
func nextPart(path string) (part, rest string) {
	path = strings.TrimPrefix(path, ".")
	if path == "" || path[0] == '"' {
		return path, ""
	}
	if end := strings.IndexAny(path[1:], ".["); end >= 0 {
		return path[:end+1], path[end+1:]
	}
	return path, ""
}

// child returns what a part of a path stands for, with its key if it is a field.
func child(node *yaml.Node, part string) (key, value *yaml.Node) {
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(strings.Trim(part, "[]")); err == nil && i >= 0 && i < len(node.Content) {
			return nil, node.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			if name := node.Content[i].Value; name == part || record.Quote(name) == part {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}

// locateSection returns the place of a section that is not in the list of the fields but in
// the text after them: [2].text, for example.
func (s *source) locateSection(path string) (at feed.Position, ok bool) {
	part, field := nextPart(path)
	index, err := strconv.Atoi(strings.Trim(part, "[]"))
	if err != nil {
		return at, false
	}
	if list := s.value("sections"); list != nil {
		index -= len(list.Content)
	}
	sections, _ := s.sections()
	if index < 0 || index >= len(sections) {
		return at, false
	}
	at = feed.Position{File: s.name, Line: sections[index].line, Column: len(heading) + 1}
	if strings.HasPrefix(field, ".text") {
		at.Line, at.Column = sections[index].textLine, 1
	}
	return at, true
}
