package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"io"
	"strings"
)

// A key consists of a prefix, a public id, a secret of 190 bits, and a checksum
// that detects a mistyped key without a database query.
const (
	keyPrefix    = "pal_"
	idLength     = 12
	secretLength = 32
	checkLength  = 6
	keyLength    = len(keyPrefix) + idLength + secretLength + checkLength

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Key is a well-formed API key. The Keyring decides whether it is valid.
type Key struct {
	ID     string
	secret string
}

// NewKey generates a random key.
func NewKey() Key { return readKey(rand.Reader) }

func readKey(random io.Reader) Key {
	return Key{readText(random, idLength), readText(random, secretLength)}
}

// String leaves the secret out, so that printing a key never reveals it.
func (k Key) String() string { return keyPrefix + k.ID + "…" }

// Text returns the complete key, which its owner sees once.
func (k Key) Text() string {
	body := k.ID + k.secret
	return keyPrefix + body + checksum(body)
}

// Hash returns the hash of the secret, which is all that is stored of it.
func (k Key) Hash() []byte {
	sum := sha256.Sum256([]byte(k.secret))
	return sum[:]
}

// matches compares the secret with a stored hash in constant time.
func (k Key) matches(hash []byte) bool { return subtle.ConstantTimeCompare(k.Hash(), hash) == 1 }

// ParseKey parses the text of a key and verifies its checksum.
func ParseKey(text string) (Key, bool) {
	if len(text) != keyLength || !strings.HasPrefix(text, keyPrefix) {
		return Key{}, false
	}
	body, check := text[len(keyPrefix):keyLength-checkLength], text[keyLength-checkLength:]
	if subtle.ConstantTimeCompare([]byte(checksum(body)), []byte(check)) != 1 {
		return Key{}, false
	}
	return Key{body[:idLength], body[idLength:]}, true
}

func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	digits := make([]byte, checkLength)
	for i := range digits {
		digits[checkLength-1-i] = base62[sum%62]
		sum /= 62
	}
	return string(digits)
}

// readText turns random bytes into evenly distributed base62 digits. It skips
// bytes that would make some digits more likely than others.
func readText(random io.Reader, length int) string {
	const fair = 256 - 256%62
	text := make([]byte, 0, length)
	buffer := make([]byte, length)
	for len(text) < length {
		if _, err := io.ReadFull(random, buffer); err != nil {
			panic(err) // rand.Reader never fails, and sessionKey derives enough bytes
		}
		for _, b := range buffer {
			if int(b) < fair && len(text) < length {
				text = append(text, base62[b%62])
			}
		}
	}
	return string(text)
}
