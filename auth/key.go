package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"io"
	"strings"
)

// A key is one word of letters and digits: a prefix that tells whose it is, a
// public id, a secret of 190 bits, and a checksum that tells a mistyped key
// from an unknown one without asking the database.
const (
	keyPrefix    = "pal_"
	idLength     = 12
	secretLength = 32
	checkLength  = 6
	keyLength    = len(keyPrefix) + idLength + secretLength + checkLength
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Key is a well-formed key; whether it opens anything is the keyring's to say.
type Key struct {
	ID     string
	secret string
}

// NewKey makes a key that nobody has.
func NewKey() Key { return Key{randomText(idLength), randomText(secretLength)} }

// String shows no secret to who prints a key by mistake.
func (k Key) String() string { return keyPrefix + k.ID + "…" }

// Text is the whole key, as its owner sees it once.
func (k Key) Text() string {
	body := k.ID + k.secret
	return keyPrefix + body + checksum(body)
}

// Hash is what we keep of the secret.
func (k Key) Hash() []byte {
	sum := sha256.Sum256([]byte(k.secret))
	return sum[:]
}

// opens tells whether the key is the one whose hash was kept, in a time that
// tells nothing of how close it came.
func (k Key) opens(hash []byte) bool { return subtle.ConstantTimeCompare(k.Hash(), hash) == 1 }

// ParseKey reads a key; false for what cannot be one.
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

func randomText(length int) string { return drawText(rand.Reader, length) }

// drawText draws evenly: a byte that would favour some digits is drawn again.
func drawText(from io.Reader, length int) string {
	const fair = 256 - 256%62
	text := make([]byte, 0, length)
	buffer := make([]byte, length)
	for len(text) < length {
		if _, err := io.ReadFull(from, buffer); err != nil {
			panic(err) // what we draw from does not run dry
		}
		for _, b := range buffer {
			if int(b) < fair && len(text) < length {
				text = append(text, base62[b%62])
			}
		}
	}
	return string(text)
}
