// Package scalar holds the public model's own scalars.
package scalar

import (
	"errors"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalDate writes a day as it is stored.
func MarshalDate(day string) graphql.Marshaler { return graphql.MarshalString(day) }

// UnmarshalDate takes real days only.
func UnmarshalDate(value any) (string, error) {
	day, ok := value.(string)
	if !ok {
		return "", errors.New("a date is text, YYYY-MM-DD")
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return "", errors.New("not a real date, YYYY-MM-DD")
	}
	return day, nil
}
