package feed

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// field is one key of a JSON object that is read into an R.
type field[R any] struct {
	name     string
	required bool
	read     rule[R]
}

func must[R any](name string, read rule[R]) field[R] { return field[R]{name, true, read} }
func may[R any](name string, read rule[R]) field[R]  { return field[R]{name, false, read} }

// fields are all the keys that an object may have.
type fields[R any] struct {
	all   []field[R]
	index map[string]int
}

func newFields[R any](all ...field[R]) fields[R] {
	index := make(map[string]int, len(all))
	for i, f := range all {
		index[f.name] = i
	}
	return fields[R]{all, index}
}

// read reads the rest of an object that dec has entered. Wrong values are
// reported and reading goes on; an error means that this is not JSON.
func (f fields[R]) read(dec *jsontext.Decoder, rec *R, report reporter) error {
	var seen uint64 // a bit for each field
	for dec.PeekKind() != '}' {
		// A token is only good until the next one is read.
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		i, known := f.index[name]
		switch {
		case !known:
			report(keyText(name), "is not a known field")
		case seen&(1<<i) != 0:
			report(name, "is given twice")
		default:
			seen |= 1 << i
			f.all[i].read(rec, value, func(path, problem string) { report(name+path, problem) })
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i, field := range f.all {
		if field.required && seen&(1<<i) == 0 {
			report(field.name, "is missing")
		}
	}
	return nil
}

// list reads an array of objects.
func list[R, E any](at func(*R) *[]E, elements fields[E]) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		if value.Kind() != '[' {
			report("", kindName(value)+" is given, a list is expected")
			return
		}
		dec := newDecoder(value)
		_, _ = dec.ReadToken() // the bracket; the value is known to be well formed
		for i := 0; dec.PeekKind() != ']'; i++ {
			place := fmt.Sprintf("[%d]", i)
			if dec.PeekKind() != '{' {
				other, _ := dec.ReadValue()
				report(place, kindName(other)+" is given, an object is expected")
				continue
			}
			_, _ = dec.ReadToken()
			var element E
			_ = elements.read(dec, &element, func(path, problem string) { report(place+"."+path, problem) })
			*at(rec) = append(*at(rec), element)
		}
	}
}

// newDecoder reads one line. Keys given twice are told by their field, in our
// words, so the decoder lets them pass.
func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
}
