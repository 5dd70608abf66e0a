package auth

import (
	"fmt"
	"strings"
	"testing"

	"palmares/ent/migrate"
	"palmares/internal/core/store"
)

// everythingStored is every value of every table, as text.
func everythingStored(t *testing.T, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	for _, table := range migrate.Tables {
		rows, err := s.Write.QueryContext(t.Context(), "SELECT * FROM "+table.Name)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for _, value := range values {
				if text, is := value.([]byte); is {
					value = string(text)
				}
				fmt.Fprintln(&all, value)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
