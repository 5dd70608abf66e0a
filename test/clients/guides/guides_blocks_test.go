package guides_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/web/prose"

	"palmares/internal/dev/check"
)

// block is a code block of a guide.
type block struct {
	prose.Info
	line int // of its fence
	text string
}

// blocksOf returns every code block of a guide.
func blocksOf(t *testing.T, text string) (blocks []block) {
	t.Helper()
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{Info: prose.ParseInfo(fence), line: i + 1}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	check.MustTrue(t, open == nil && len(blocks) != 0,
		"got %d blocks and unclosed block %v, want some blocks, all closed", len(blocks), open)
	return blocks
}

// Numbers in header values may change over time.
var (
	headerLine = regexp.MustCompile(`^[A-Za-z-]+: `)
	digits     = regexp.MustCompile(`\d+`)
)

// compareText compares an output with the sample in a guide. In the sample, …
// stands for any text, or for any lines if it is alone on a line. Numbers in
// headers may differ.
func compareText(sample, output string) error {
	var pattern strings.Builder
	for line := range strings.Lines(sample) {
		line = strings.TrimSuffix(line, "\n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		quoted := ellipsisPattern(line)
		if headerLine.MatchString(line) {
			quoted = digits.ReplaceAllString(quoted, `\d+`)
		}
		pattern.WriteString(quoted + `\n`)
	}
	output = strings.TrimRight(strings.ReplaceAll(output, "\r", ""), "\n") + "\n"
	// Header names are case-insensitive.
	if !regexp.MustCompile(`(?i)\A` + pattern.String() + `\z`).MatchString(output) {
		return fmt.Errorf("got\n%s\nwant, as in the guide,\n%s", output, sample)
	}
	return nil
}

// ellipsisPattern returns a pattern in which … matches any text.
func ellipsisPattern(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*")
}

// compareJSON compares JSON with the sample in a guide. Lists, and objects that
// contain …, may have more elements than shown.
func compareJSON(sample, output string) error {
	var want, got any
	if err := json.Unmarshal([]byte(sample), &want); err != nil {
		return fmt.Errorf("got a sample that is not JSON: %w", err)
	}
	if err := json.Unmarshal([]byte(output), &got); err != nil {
		return fmt.Errorf("got an output that is not JSON: %w\n%s", err, output)
	}
	if err := compareValues("", want, got); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

func compareValues(where string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		if !is {
			return fmt.Errorf("%s: got %v, want an object", where, got)
		}
		_, abridged := want["…"]
		for name := range want {
			if value, there := object[name]; there {
				if err := compareValues(where+"."+name, want[name], value); err != nil {
					return err
				}
			} else if name != "…" {
				return fmt.Errorf("%s: got no %q, want one", where, name)
			}
		}
		for name := range object {
			if _, shown := want[name]; !shown && !abridged {
				return fmt.Errorf("%s: got %q, want only what the sample shows", where, name)
			}
		}
		return nil
	case []any:
		list, _ := got.([]any) // nil if it is not a list
		if len(list) < len(want) {
			return fmt.Errorf("%s: got %d items, want at least %d", where, len(list), len(want))
		}
		for i := range want {
			if err := compareValues(fmt.Sprintf("%s[%d]", where, i), want[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if text, isText := got.(string); isText {
		if pattern, alsoText := want.(string); alsoText && regexp.MustCompile(`(?s)\A`+ellipsisPattern(pattern)+`\z`).MatchString(text) {
			return nil
		}
	} else if want == got {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", where, got, want)
}

func TestCompareSamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check          func(sample, output string) error
		sample, output string
		match          bool
	}{
		{compareText, "48 tools\n", "48 tools\n", true},
		{compareText, "48 tools\n", "7 tools\n", false},
		{compareText, "48 tools\n", "48 prices\n", false},
		{compareText, "48 tools\n", "48 tools\n48 tools\n", false},
		{compareText, "X-Left: 999\n", "x-left: 17\n", true},
		{compareText, "X-Left: 999\n", "x-left: many\n", false},
		{compareText, "a\n…\nb\n", "a\nb", true},
		{compareText, "a\n…\nb\n", "a\nx\r\ny\nb", true},
		{compareText, "a\n…\nb\n", "a\nx\ny\n", false},
		{compareText, "9.4 (…)\n", "9.4 (anything)\n", true},
		{compareText, "9.4 (…)\n", "9x4 (anything)\n", false},
		{compareText, "200\n304\n", "200\n200\n", false},
		{compareJSON, `{"a": 1}`, `{"a": 1.0}`, true},
		{compareJSON, `{"a": 1}`, `{"a": 2}`, false},
		{compareJSON, `{"a": 1}`, `{"a": "1"}`, false},
		{compareJSON, `{"a": "1"}`, `{"a": 1}`, false},
		{compareJSON, `{"a": "b…"}`, `{"a": "bcd"}`, true},
		{compareJSON, `{"a": "b…"}`, `{"a": "cd"}`, false},
		{compareJSON, `{"a": 1}`, `{"a": 1, "b": 3}`, false},
		{compareJSON, `{"a": 1, "…": "…"}`, `{"a": 1, "b": 3}`, true},
		{compareJSON, `{"a": 1, "…": "…"}`, `{"b": 3}`, false},
		{compareJSON, `{"a": [{"b": 1}]}`, `{"a": [{"b": 1}, {"c": 3}]}`, true},
		{compareJSON, `{"a": [{"b": 1}]}`, `{"a": []}`, false},
		{compareJSON, `{"a": {}}`, `{"a": []}`, false},
		{compareJSON, `{"a": 1}`, `no`, false},
	} {
		if err := c.check(c.sample, c.output); (err == nil) != c.match {
			t.Errorf("sample %q, output %q: got %v, want a match: %t", c.sample, c.output, err, c.match)
		}
	}
}

// saved returns the files that a guide has its readers create.
func saved(blocks []block) (files []string) {
	for _, b := range blocks {
		if b.Runs() && b.Name != "" && !slices.Contains(files, b.Name) {
			files = append(files, b.Name)
		}
	}
	return files
}
