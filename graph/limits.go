package graph

import "time"

// Limits bound what one request may ask for.
type Limits struct {
	Body       int64         // bytes of a request's body
	Tokens     int           // lexical tokens of a document
	Depth      int           // levels of fields
	Fields     int           // fields, fragments written out
	Aliases    int           // aliased fields, fragments written out
	Directives int           // directives, fragments written out
	Cost       int           // see cost.go
	Response   int64         // bytes of a response
	Time       time.Duration // for one operation
}

// DefaultLimits are generous for dashboards and tight for attackers.
var DefaultLimits = Limits{
	Body:       100_000,
	Tokens:     4_000,
	Depth:      12,
	Fields:     500,
	Aliases:    50,
	Directives: 50,
	Cost:       20_000,
	Response:   2_000_000,
	Time:       5 * time.Second,
}
