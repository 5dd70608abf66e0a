package guides_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/web/guide"
)

// block is a piece of code in a guide.
type block struct {
	guide.Info
	line int // of its fence
	text string
}

// blocksOf finds every block of a guide.
func blocksOf(t *testing.T, text string) (blocks []block) {
	t.Helper()
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{Info: guide.ParseInfo(fence), line: i + 1}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks, and one that is open: %v", len(blocks), open)
	}
	return blocks
}

// What a header tells may be another tomorrow.
var (
	headerLine = regexp.MustCompile(`^[A-Za-z-]+: `)
	digits     = regexp.MustCompile(`\d+`)
)

// printed tells whether an output is what a guide shows: … stands for
// anything, and alone on a line for any lines; numbers in headers may differ.
func printed(sample, output string) error {
	var pattern strings.Builder
	for line := range strings.Lines(sample) {
		line = strings.TrimSuffix(line, "\n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		quoted := withGaps(line)
		if headerLine.MatchString(line) {
			quoted = digits.ReplaceAllString(quoted, `\d+`)
		}
		pattern.WriteString(quoted + `\n`)
	}
	output = strings.TrimRight(strings.ReplaceAll(output, "\r", ""), "\n") + "\n"
	// Names of headers are the same in either case.
	if !regexp.MustCompile(`(?i)\A` + pattern.String() + `\z`).MatchString(output) {
		return fmt.Errorf("the guide shows\n%s\nbut this is what comes:\n%s", sample, output)
	}
	return nil
}

// withGaps matches a text in which … stands for anything.
func withGaps(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*")
}

// answered is printed for JSON. An object with a … in it may have more than is
// shown, a list always.
func answered(sample, output string) error {
	var want, got any
	if err := json.Unmarshal([]byte(sample), &want); err != nil {
		return fmt.Errorf("what the guide shows is no JSON: %w", err)
	}
	if err := json.Unmarshal([]byte(output), &got); err != nil {
		return fmt.Errorf("what comes is no JSON: %w\n%s", err, output)
	}
	if err := alike("", want, got); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

func alike(where string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		if !is {
			return fmt.Errorf("%s is no object", where)
		}
		_, abridged := want["…"]
		for name := range want {
			if value, there := object[name]; there {
				if err := alike(where+"."+name, want[name], value); err != nil {
					return err
				}
			} else if name != "…" {
				return fmt.Errorf("%s has no %q", where, name)
			}
		}
		for name := range object {
			if _, shown := want[name]; !shown && !abridged {
				return fmt.Errorf("%s also has %q", where, name)
			}
		}
		return nil
	case []any:
		list, _ := got.([]any) // else it has nothing in it
		if len(list) < len(want) {
			return fmt.Errorf("%s has %d items", where, len(list))
		}
		for i := range want {
			if err := alike(fmt.Sprintf("%s[%d]", where, i), want[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if text, isText := got.(string); isText {
		if pattern, alsoText := want.(string); alsoText && regexp.MustCompile(`(?s)\A`+withGaps(pattern)+`\z`).MatchString(text) {
			return nil
		}
	} else if want == got {
		return nil
	}
	return fmt.Errorf("%s is %v, and not %v", where, got, want)
}

// What checks the guides is itself checked: it must be able to say no.
func TestSamplesAreCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check          func(sample, output string) error
		sample, output string
		good           bool
	}{
		{printed, "48 tools\n", "48 tools\n", true},
		{printed, "48 tools\n", "7 tools\n", false},
		{printed, "48 tools\n", "48 prices\n", false},
		{printed, "48 tools\n", "48 tools\n48 tools\n", false},
		{printed, "X-Left: 999\n", "x-left: 17\n", true},
		{printed, "X-Left: 999\n", "x-left: many\n", false},
		{printed, "a\n…\nb\n", "a\nb", true},
		{printed, "a\n…\nb\n", "a\nx\r\ny\nb", true},
		{printed, "a\n…\nb\n", "a\nx\ny\n", false},
		{printed, "9.4 (…)\n", "9.4 (anything)\n", true},
		{printed, "9.4 (…)\n", "9x4 (anything)\n", false},
		{printed, "200\n304\n", "200\n200\n", false},
		{answered, `{"a": 1}`, `{"a": 1.0}`, true},
		{answered, `{"a": 1}`, `{"a": 2}`, false},
		{answered, `{"a": 1}`, `{"a": "1"}`, false},
		{answered, `{"a": "1"}`, `{"a": 1}`, false},
		{answered, `{"a": "b…"}`, `{"a": "bcd"}`, true},
		{answered, `{"a": "b…"}`, `{"a": "cd"}`, false},
		{answered, `{"a": 1}`, `{"a": 1, "b": 3}`, false},
		{answered, `{"a": 1, "…": "…"}`, `{"a": 1, "b": 3}`, true},
		{answered, `{"a": 1, "…": "…"}`, `{"b": 3}`, false},
		{answered, `{"a": [{"b": 1}]}`, `{"a": [{"b": 1}, {"c": 3}]}`, true},
		{answered, `{"a": [{"b": 1}]}`, `{"a": []}`, false},
		{answered, `{"a": {}}`, `{"a": []}`, false},
		{answered, `{"a": 1}`, `no`, false},
	} {
		if err := c.check(c.sample, c.output); (err == nil) != c.good {
			t.Errorf("%q and %q: %v", c.sample, c.output, err)
		}
	}
}

// saved are the files that a guide tells its reader to make.
func saved(blocks []block) (files []string) {
	for _, b := range blocks {
		if b.Runs() && b.Name != "" && !slices.Contains(files, b.Name) {
			files = append(files, b.Name)
		}
	}
	return files
}
