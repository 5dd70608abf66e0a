package apidocs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// The scripts have every message in both languages.
func TestScriptMessages(t *testing.T) {
	source, err := os.ReadFile("web/src/messages.js")
	check.OK(t, err)
	english, french, found := strings.Cut(string(source), "const french = {")
	if !found {
		t.Fatal("got no French messages, want some")
	}
	keys := func(text string) (all []string) {
		for _, match := range regexp.MustCompile(`(?m)^  (\w+): `).FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
		return all
	}
	if want, got := keys(english), keys(french); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got French messages %v, want %v", got, want)
	}
}
