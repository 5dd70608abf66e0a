package rest

import "os"

// Tests read the examples from disk, so that one run with -update writes them
// and the document that contains them.
func init() { examples = os.DirFS(".") }
