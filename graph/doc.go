// Package graph is the public model of the catalog: the schema in
// schema/*.graphql, and the one executor that GraphQL, REST and every other
// interface use. It reads through ent and knows neither REST nor how callers
// authenticate.
//
// A document is parsed, measured and validated once, and cached (documents.go,
// limits.go). The cost of each operation is calculated with its variables (cost.go). Then each
// root field reads what its selection needs (reader.go, and one file for each
// noun): level by level, with one statement for all items of a level. Fields
// below the root are plain struct fields or lists that were read with their
// parents; they need no statement of their own.
//
// Subscriptions are streams of server-sent events (stream.go): an announcement
// wakes them, and they continue in the journal where they stopped
// (subscription.go).
package graph
