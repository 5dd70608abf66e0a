package rest

import "os"

// One run with -update writes the examples, and the document with them.
func init() { examples = os.DirFS(".") }
