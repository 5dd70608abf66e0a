package auth

import (
	"bytes"
	"crypto/rand"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func TestKeys(t *testing.T) {
	word := regexp.MustCompile(`^\w+$`) // so that a double click selects it
	seen := map[string]bool{}
	for range 1000 {
		key := NewKey()
		text := key.Text()
		if !word.MatchString(text) || !strings.HasPrefix(text, "pal_") || len(text) != 54 || seen[text] {
			t.Fatalf("got key %s, want a unique word of 54 characters", text)
		}
		seen[text] = true
		read, ok := ParseKey(text)
		if !ok || read != key || !read.matches(key.Hash()) || read.matches(NewKey().Hash()) {
			t.Fatalf("%s: got %+v, want %+v", text, read, key)
		}
	}
	if bits := float64(secretLength) * 5.954; bits < 160 {
		t.Errorf("got a secret of %v bits, want at least 160", bits)
	}
}

// A mistyped character is detected without the database.
func TestMistypedKeys(t *testing.T) {
	text := NewKey().Text()
	for i := range text {
		for _, char := range []byte{'0', 'Z', 'a', '_', ' '} {
			changed := []byte(text)
			if changed[i] == char {
				continue
			}
			changed[i] = char
			if _, ok := ParseKey(string(changed)); ok {
				t.Errorf("%s instead of %s: got a key, want none", changed, text)
			}
		}
	}
	for _, wrong := range []string{
		"", "pal_", text[:len(text)-1], text + "0", " " + text, text + "\n", strings.ToUpper(text), strings.ToLower(text),
		strings.Replace(text, "pal_", "sk__", 1), strings.Repeat("x", 5000), "pal_" + strings.Repeat("0", 50)[:50],
	} {
		if _, ok := ParseKey(wrong); ok {
			t.Errorf("%.60q: got a key, want none", wrong)
		}
	}
}

// All characters are equally likely.
func TestSecretsAreUniform(t *testing.T) {
	counts := map[byte]int{}
	for _, char := range []byte(readText(rand.Reader, 62*2000)) {
		counts[char]++
	}
	for _, char := range []byte(base62) {
		if n := counts[char]; n < 1700 || n > 2300 {
			t.Errorf("%c: got %d occurrences, want about 2000", char, n)
		}
	}
	if bytes.Equal(NewKey().Hash(), NewKey().Hash()) {
		t.Error("got the same secret twice, want different ones")
	}
}

// Keys that were issued stay valid: their checksum is part of the format.
func TestFormatOfKeys(t *testing.T) {
	check.Equal(t, sampleKey.Text(), "pal_0123456789ab"+sampleKey.secret+"1E6wma")
	check.Equal(t, readText(bytes.NewReader([]byte{0, 61, 62, 247, 248, 255, 1, 2}), 4), "0z0z", "want bytes below 248 as digits")
	check.Equal(t, readText(bytes.NewReader([]byte{248, 255, 1, 2, 3, 4, 5, 6}), 4), "1234", "want bytes from 248 skipped")
}
