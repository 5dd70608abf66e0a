// Package graph is the public model of the catalog: the schema in
// schema/*.graphql, and the one executor that GraphQL, REST and every other
// interface use. It knows neither HTTP nor how callers authenticate. Start reading
// at Executor.Execute.
//
// Package graph/document parses, limits and validates a document once, and calculates
// the cost of its operation with each request's variables. Then each root field reads
// what its selection needs (reader.go, and one file for each noun): tools, categories,
// comparisons and prices from a release in memory (package release), and reviews and
// the journal from the database, with one statement for all items of a level. Fields
// below the root are plain struct fields or lists that were read with their parents.
//
// Subscriptions continue in the journal where they stopped when an announcement
// wakes them (subscription.go). Package internal/transport/graphql serves operations
// and subscriptions over HTTP.
package graph
