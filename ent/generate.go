// Package ent is the generated data access code of palmares. The hand-written
// schema is in package schema.
package ent

//go:generate go run entc.go
