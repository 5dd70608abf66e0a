// Package scalar encodes and decodes the custom scalars of the schema.
package scalar

import (
	"encoding/json"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// MarshalDate writes a date as it is stored.
func MarshalDate(date string) graphql.Marshaler { return graphql.MarshalString(date) }

// UnmarshalDate accepts only existing dates; there is no year 0.
func UnmarshalDate(value any) (string, error) {
	date, _ := value.(string)
	if !params.IsDay(date) {
		return "", problem.New(problem.BadInput, "A Date must be a valid date in the form YYYY-MM-DD.")
	}
	return date, nil
}

// MarshalDateTime writes a time in UTC, to the second.
func MarshalDateTime(at time.Time) graphql.Marshaler {
	return graphql.MarshalString(at.UTC().Format(time.RFC3339))
}

// UnmarshalDateTime is required by gqlgen; no argument is a DateTime.
func UnmarshalDateTime(value any) (time.Time, error) {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, problem.New(problem.BadInput, "A DateTime must have the form YYYY-MM-DDThh:mm:ssZ.")
	}
	return at, nil
}

// MarshalJSON writes a value as it is stored.
func MarshalJSON(value json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = w.Write(value) })
}

// UnmarshalJSON is required by gqlgen; no argument is JSON.
func UnmarshalJSON(any) (json.RawMessage, error) {
	return nil, problem.New(problem.BadInput, "Arguments cannot be JSON.")
}
