// Package auth answers who is calling and what they may read. How much they
// may read is the quota's business.
package auth

import "context"

// Plan is what a caller has signed up for.
type Plan string

// The plans there are.
const (
	Anonymous Plan = "anonymous"
	Developer Plan = "developer"
	Pro       Plan = "pro"
)

// Caller is whoever sent a request.
type Caller struct{ Plan Plan }

// MayReadEmbeddings tells whether the caller has the plan for it.
func (c Caller) MayReadEmbeddings() bool { return c.Plan == Developer || c.Plan == Pro }

type callerKey struct{}

// WithCaller tells everything behind the gate who is calling.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerFrom is who is calling; nobody in particular unless the gate said so.
func CallerFrom(ctx context.Context) Caller {
	if caller, ok := ctx.Value(callerKey{}).(Caller); ok {
		return caller
	}
	return Caller{Plan: Anonymous}
}
