package feed

import "slices"

// How much goes to and from the database at once.
const (
	// upsertBatch is small because the SQLite driver's time to bind a
	// statement grows with the square of its parameters; larger batches gain
	// PostgreSQL little.
	upsertBatch = 40
	insertBatch = 200 // of rows with few columns
	// batchBytes is how much text of the feed a batch may bring before it is
	// written, however few its records.
	batchBytes = 256 << 10
	// pageSize is how many rows are held at once, reviews included.
	pageSize = 500
)

// inBatches calls do with at most size items at a time.
func inBatches[T any](items []T, size int, do func([]T) error) error {
	for batch := range slices.Chunk(items, size) {
		if err := do(batch); err != nil {
			return err
		}
	}
	return nil
}

// inPages calls each for every row, asking for the next page after the last slug.
func inPages[Row any](query func(after string) ([]Row, error), each func(Row) (slug string)) error {
	for after := ""; ; {
		rows, err := query(after)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = each(row)
		}
		if len(rows) < pageSize {
			return nil
		}
	}
}
