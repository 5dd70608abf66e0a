package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the length in characters to which Words truncates a word.
const maxWord = 40

// elisions are the French words that lose their last vowel before an
// apostrophe. Like their full forms, they say nothing about a text.
var elisions = map[string]bool{
	"c": true, "d": true, "j": true, "l": true, "m": true, "n": true, "qu": true, "s": true, "t": true,
}

// Words returns the words of s in order, folded. A word is a run of letters and
// digits, so hyphens and apostrophes separate words. Elided words are left out:
// "l'agent" has the word "agent" only.
func Words(s string) []string {
	var words []string
	for field := range strings.FieldsSeq(s) {
		words = appendWords(words, Fold(field)) // Fold is faster if it sees ASCII only
	}
	return words
}

func appendWords(words []string, folded string) []string {
	start, length := -1, 0 // of the current word, in bytes and in characters
	end := 0               // where its first maxWord characters end
	for i, r := range folded {
		if isWordPart(r) {
			if start < 0 {
				start, length = i, 0
			}
			if length++; length <= maxWord {
				end = i + utf8.RuneLen(r)
			}
			continue
		}
		if start >= 0 && !(isApostrophe(r) && elisions[folded[start:end]]) {
			words = append(words, folded[start:end])
		}
		start = -1
	}
	if start >= 0 {
		words = append(words, folded[start:end])
	}
	return words
}

// isWordPart accepts marks, too: Fold removes accents, and the remaining marks
// are the vowels of scripts such as Devanagari.
func isWordPart(r rune) bool {
	if r < unicode.MaxASCII {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
	}
	return r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !isApostrophe(r)
}

func isApostrophe(r rune) bool { return strings.ContainsRune("'’‘ʼ", r) }
