package scalar

import (
	"time"

	"github.com/99designs/gqlgen/graphql"

	"palmares/internal/core/problem"
)

// MarshalDateTime writes a moment to the second, in UTC, as events tell it.
func MarshalDateTime(at time.Time) graphql.Marshaler {
	return graphql.MarshalString(at.UTC().Format(time.RFC3339))
}

// UnmarshalDateTime is for arguments, of which none is a moment yet.
func UnmarshalDateTime(value any) (time.Time, error) {
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, problem.New(problem.BadInput, "A moment is YYYY-MM-DDThh:mm:ssZ.")
	}
	return at, nil
}
