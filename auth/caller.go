// Package auth answers who is calling and what they may read: a key leads to
// an account, and that to a plan. How much they may read is the quota's
// business.
package auth

import "context"

// Caller is whoever sent a request.
type Caller struct {
	Plan    Plan
	Account int    // 0 for an anonymous caller
	Key     string // the public id of the key that was sent
	// Carried is how many requests of deleted accounts with the same email
	// address count against the quota on CarriedDay, written YYYY-MM-DD.
	Carried    int
	CarriedDay string
}

// MayReadEmbeddings tells whether the caller has the plan for it.
func (c Caller) MayReadEmbeddings() bool { return c.Plan.Terms().Embeddings }

type callerKey struct{}

// WithCaller tells everything behind the gate who is calling.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerFrom is who is calling; anonymous where nobody said.
func CallerFrom(ctx context.Context) Caller {
	if caller, ok := ctx.Value(callerKey{}).(Caller); ok {
		return caller
	}
	return Caller{Plan: Anonymous}
}
