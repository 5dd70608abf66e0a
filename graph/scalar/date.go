// Package scalar holds the public model's own scalars.
package scalar

import (
	"time"

	"github.com/99designs/gqlgen/graphql"

	"palmares/internal/core/problem"
)

var notADate = problem.New(problem.BadInput, "A date is a real day, YYYY-MM-DD.")

// MarshalDate writes a day as it is stored.
func MarshalDate(day string) graphql.Marshaler { return graphql.MarshalString(day) }

// UnmarshalDate takes real days only.
func UnmarshalDate(value any) (string, error) {
	day, ok := value.(string)
	if !ok {
		return "", notADate
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return "", notADate
	}
	return day, nil
}
