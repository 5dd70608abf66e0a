package cache

import "strings"

// mostTags is how many tags of If-None-Match are compared: a client has one or
// a few, and more of them only cost time.
const mostTags = 16

// AnyTag reports whether If-None-Match is "*", which matches every response
// without knowing one.
func AnyTag(headers []string) bool {
	for _, header := range headers {
		if strings.TrimSpace(header) == "*" {
			return true
		}
	}
	return false
}

// matches reports whether If-None-Match names a tag, or any. Tags are compared
// weakly, as that header requires: some proxies weaken what they forward.
func matches(headers []string, tag string) bool {
	if AnyTag(headers) {
		return true
	}
	compared := 0
	for _, header := range headers {
		for rest := header; rest != ""; {
			rest = strings.TrimLeft(rest, " \t,")
			rest = strings.TrimPrefix(rest, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break // the rest is no list of tags
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 || compared == mostTags {
				break
			}
			if rest[:end+2] == tag {
				return true
			}
			rest = rest[end+2:]
			compared++
		}
	}
	return false
}
