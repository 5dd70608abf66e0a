package rest

import (
	"os"
	"time"
)

// Tests read the examples from disk, so that one run with -update writes them
// and the document that contains them.
func init() { examples = os.DirFS(".") }

// SetSendTime limits how long a client may take to accept a chunk of a download.
func (h *Handler) SetSendTime(limit time.Duration) { h.sendTime = limit }
