package cache

import "strings"

// matches tells whether If-None-Match names a tag, or any. Tags are compared
// weakly, as that header wants it: some proxies weaken what they pass on.
func matches(headers []string, tag string) bool {
	for _, header := range headers {
		if strings.TrimSpace(header) == "*" {
			return true
		}
		for rest := header; rest != ""; {
			rest = strings.TrimLeft(rest, " \t,")
			rest = strings.TrimPrefix(rest, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break // what follows is no list of tags
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			if rest[:end+2] == tag {
				return true
			}
			rest = rest[end+2:]
		}
	}
	return false
}
