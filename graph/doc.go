// Package graph is the public model of the catalog: the contract in
// schema/*.graphql, and the one executor that GraphQL callers and every REST
// path run on. It reads through ent and knows neither REST nor how a caller
// proves who they are.
//
// An answer is made in three steps. The document is parsed, measured and
// validated once, and kept (document.go, guard.go); an operation is priced
// with its variables (cost.go); then each root field reads what its selection
// asks for, level by level, one statement for a level's items (load_*.go).
// Fields below the root are plain struct fields: no statement, no goroutine.
//
// Subscriptions are streams of server-sent events (stream.go): a signal wakes
// them (news.go), and they read on in the journal from where they are.
package graph
