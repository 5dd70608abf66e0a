package scalar

import (
	"encoding/json"
	"io"

	"github.com/99designs/gqlgen/graphql"

	"palmares/internal/core/problem"
)

// MarshalJSON writes a value as it is stored, undecoded.
func MarshalJSON(value json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = w.Write(value) })
}

// UnmarshalJSON is for arguments, of which none is JSON.
func UnmarshalJSON(any) (json.RawMessage, error) {
	return nil, problem.New(problem.BadInput, "JSON is not taken here.")
}
