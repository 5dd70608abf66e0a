package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile is what the text of a licence is found under.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([-.](txt|md|mit|apache|bsd|code))?$`)

// licenceIn reads the licence in a module's folder; empty if there is none that
// is known. Of several, all are asked for.
func licenceIn(folder string) string {
	entries, err := os.ReadDir(folder)
	if folder == "" || err != nil {
		return ""
	}
	var found []string
	for _, entry := range entries {
		if !licenceFile.MatchString(entry.Name()) || entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return ""
		}
		licence := recognise(string(text))
		if licence == "" { // one that is not known may ask for anything
			return ""
		}
		found = append(found, licence)
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), " AND ")
}

// Sentences that only one licence has. A text may hold more than one licence:
// it is what the first of these says only where none before it does.
var sentences = []struct{ licence, says string }{
	{"AGPL-3.0", "gnu affero general public license"},
	{"LGPL-3.0", "gnu lesser general public license"},
	{"LGPL-2.1", "gnu library general public license"},
	{"GPL-3.0", "gnu general public license"},
	{"SSPL-1.0", "server side public license"},
	{"BUSL-1.1", "business source license"},
	{"EPL-2.0", "eclipse public license"},
	{"Apache-2.0", "apache license version 2.0"},
	{"MPL-2.0", "mozilla public license"},
	{"BSD-3-Clause", "endorse or promote products derived from this software"},
	{"BSD-2-Clause", "redistributions in binary form must reproduce the above copyright"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// notOurs are where licences name others, without being one.
var notOurs = regexp.MustCompile(`secondary license\W+means either.*?of those licenses`)

func recognise(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n*#/,", r) }), " ")
	text = notOurs.ReplaceAllString(text, "")
	for _, s := range sentences {
		says := strings.Join(strings.FieldsFunc(s.says, func(r rune) bool { return strings.ContainsRune(" ,/", r) }), " ")
		if strings.Contains(text, says) {
			return s.licence
		}
	}
	return ""
}
