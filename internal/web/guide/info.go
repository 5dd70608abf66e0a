package guide

import "strings"

// Info is what a guide says about a block of code, beside its fence: the
// language, the file to save it as, and what its output says when a program
// that runs for ever is at work.
type Info struct {
	Language string
	Name     string // of a file; of JSON that nothing prints, the event that it is
	Until    string
}

// ParseInfo reads the words after the fence.
func ParseInfo(words string) (info Info) {
	for i, word := range strings.Fields(words) {
		until, given := strings.CutPrefix(word, "until=")
		switch {
		case i == 0:
			info.Language = word
		case given:
			info.Until = until
		default:
			info.Name = word
		}
	}
	return info
}

// Runs tells whether a block is something to run, not what comes of it.
func (i Info) Runs() bool { return i.Language != "json" && i.Language != "text" }
