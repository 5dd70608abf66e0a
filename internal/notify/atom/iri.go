package atom

import (
	"fmt"
	"strconv"
	"strings"
)

// iri escapes what browsers take in an address and RFC 3987 does not: a reader
// that is strict would drop the whole feed for it. Nothing is escaped twice.
func iri(address string) string {
	var out strings.Builder
	inHost, inFragment := true, false // brackets are for a host, and one # begins a fragment
	start := strings.Index(address, "://") + len("://")
	for i := range len(address) {
		c := address[i]
		inHost = inHost && (i < start || strings.IndexByte("/?#", c) < 0)
		switch {
		case c <= ' ', c == 0x7f, strings.IndexByte("\"<>\\^`{|}", c) >= 0,
			!inHost && (c == '[' || c == ']'), inFragment && c == '#', c == '%' && !isEscape(address[i:]):
			fmt.Fprintf(&out, "%%%02X", c)
		default:
			out.WriteByte(c)
		}
		inFragment = inFragment || c == '#'
	}
	return out.String()
}

// isEscape tells whether a text begins with a byte that is escaped already.
func isEscape(text string) bool {
	if len(text) < len("%41") {
		return false
	}
	_, err := strconv.ParseUint(text[1:3], 16, 8)
	return err == nil
}
