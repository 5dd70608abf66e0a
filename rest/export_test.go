package rest

import (
	"os"
	"time"
)

// Tests read the examples from disk, so that one run with -update writes them
// and the document that contains them.
func init() { examples = os.DirFS(".") }

// AddDeprecated adds a deprecated path with the operation of another, until the
// test calls remove.
func AddDeprecated(path, query, deprecated, sunset string) (remove func()) {
	before := routes
	routes = append(before[:len(before):len(before)], route{
		path: path, query: query, id: "getOld", summary: "Old", details: "Use another path.", deprecated: deprecated, sunset: sunset,
	})
	return func() { routes = before }
}

// SetSendTime limits how long a client may take to receive a chunk of a download.
func (h *Handler) SetSendTime(limit time.Duration) { h.Downloads.sendTime = limit }
