package graph

// Resolver is empty: a resolver finds what it reads from in its context, so
// that all of an operation's fields read the same release.
type Resolver struct{}
