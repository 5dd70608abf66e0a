// Package graph is the public model of the catalog: the schema in
// schema/*.graphql, and the one executor that GraphQL, REST and every other
// interface use. It knows neither HTTP nor how callers authenticate. Start reading
// at Executor.Execute.
//
// Package graph/document parses, limits and validates a document once, and calculates
// the cost of its operation with each request's variables. Then resolvers, in one file for
// each noun, read a release in memory (package release). Their objects are in package
// graph/model: most fields are fields or methods of these objects, and only those with
// arguments or from the database have a resolver. Reviews and the journal are in the
// database; they are read with one statement for all objects of a list and its siblings.
//
// Subscriptions continue in the journal where they stopped when an announcement
// wakes them (subscription.go). Package internal/transport/graphql serves operations
// and subscriptions over HTTP.
package graph
