package publish

import "errors"

// ErrEmptyCatalog is returned by an export before the first import.
var ErrEmptyCatalog = errors.New("the catalog is empty: nothing has been imported yet")

// errFeedChanged means that the feed was modified between two passes.
var errFeedChanged = errors.New("the feed changed while it was being read")

// ImplausibleError means that a valid feed was not imported because it is probably
// a mistake.
type ImplausibleError struct{ Reason string }

func (e *ImplausibleError) Error() string { return e.Reason }
