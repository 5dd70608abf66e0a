// Package ent is the generated data access of palmares; see schema for what
// is written by hand.
package ent

//go:generate go tool ent generate --feature sql/upsert,sql/execquery ./schema
