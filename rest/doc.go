// Package rest serves the interface's paths. A path is a row in routes.go and
// a fixed operation in queries/: what it answers is a slice of what the
// executor wrote. Nothing here touches the database.
package rest
