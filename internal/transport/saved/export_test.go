package saved

// SetPageSizes changes how many items of a list are read at a time, until the test calls
// restore.
func SetPageSizes(sizes ...int) (restore func()) {
	before := pageSizes
	pageSizes = sizes
	return func() { pageSizes = before }
}
