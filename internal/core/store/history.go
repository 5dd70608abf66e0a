package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
)

// Versioned is a table with a history: a second table holds the rows that releases
// have replaced or removed.
type Versioned struct {
	name, key string
	columns   []string
}

// The tables that make up a release.
var (
	Categories   = Versioned{category.Table, category.FieldID, category.Columns}
	Tools        = Versioned{tool.Table, tool.FieldID, tool.Columns}
	Comparisons  = Versioned{comparison.Table, comparison.FieldID, comparison.Columns}
	Sections     = Versioned{section.Table, section.FieldToolSlug, section.Columns}
	PriceChanges = Versioned{pricechange.Table, pricechange.FieldToolSlug, pricechange.Columns}
)

var versioned = []Versioned{Categories, Tools, Comparisons, Sections, PriceChanges}

// CopyToHistory copies the rows with the given keys to the history, before a release
// changes or removes them. Rows that this release itself has written are not copied.
func (v Versioned) CopyToHistory(ctx context.Context, tx *ent.Tx, dialectName string, release int, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	list, err := json.Marshal(keys) // the SQLite driver is slow with many parameters
	if err != nil {
		return err
	}
	values := "SELECT value FROM json_each($2)"
	if dialectName == dialect.Postgres {
		values = "SELECT value FROM json_array_elements_text($2::json)"
	}
	columns := strings.Join(v.columns, ", ")
	_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %[1]s_versions (%[2]s, until_release) SELECT %[2]s, $1 FROM %[1]s WHERE since_release < $1 AND %[3]s IN (%[4]s)",
		v.name, columns, v.key, values), release, string(list))
	return err
}

// At makes a query read the rows of a release: those that have not changed since,
// and those that later releases have replaced. It must be the first predicate,
// because it changes where the others select from.
func (v Versioned) At(release int) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		from := entsql.Dialect(s.Dialect())
		unchanged := from.Select(v.columns...).From(from.Table(v.name)).Where(entsql.LTE(sinceRelease, release))
		replaced := from.Select(v.columns...).From(from.Table(v.name + "_versions")).
			Where(entsql.And(entsql.LTE(sinceRelease, release), entsql.GT(untilRelease, release)))
		s.From(unchanged.UnionAll(replaced).As(v.name))
	}
}

// The columns of the history that its rows do not share with the current ones.
const (
	historyID    = "version"
	untilRelease = "until_release"
	sinceRelease = "since_release"
)

// Replaced makes a query read the next rows after an ID of the history, in the
// order of these IDs: those that releases after since have replaced or removed. It
// must be the first predicate. HistoryColumns returns
// which release did it.
func (v Versioned) Replaced(since, after int) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		s.From(entsql.Dialect(s.Dialect()).Table(v.name + "_versions").As(v.name))
		s.AppendSelect(s.C(historyID), s.C(untilRelease))
		s.Where(entsql.And(entsql.GT(s.C(untilRelease), since), entsql.GT(s.C(historyID), after)))
		s.OrderBy(s.C(historyID))
	}
}

// Earlier makes a query read the versions of a release and of the releases before it that
// have been replaced since. It must be the first predicate. HistoryColumns returns which
// release did it.
func (v Versioned) Earlier(release int) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		s.From(entsql.Dialect(s.Dialect()).Table(v.name + "_versions").As(v.name))
		s.AppendSelect(s.C(historyID), s.C(untilRelease))
		s.Where(entsql.LTE(s.C(sinceRelease), release))
	}
}

// HistoryColumns returns the ID of a row that Replaced or Earlier selected, and the release
// that replaced it.
func HistoryColumns(row interface {
	Value(string) (ent.Value, error)
}) (id, until int, err error) {
	for name, number := range map[string]*int{historyID: &id, untilRelease: &until} {
		value, err := row.Value(name)
		if err != nil {
			return 0, 0, err
		}
		n, ok := value.(int64)
		if !ok {
			return 0, 0, fmt.Errorf("cannot scan %T as the integer %s", value, name)
		}
		*number = int(n)
	}
	return id, until, nil
}

// pruneBatch limits how many rows a statement removes, because SQLite holds their
// keys in memory.
const pruneBatch = 1000

// PruneVersions removes the rows that only releases before from have, and returns
// how many it removed.
func PruneVersions(ctx context.Context, tx *ent.Tx, from int) (removed int, err error) {
	for _, v := range versioned {
		statement := fmt.Sprintf("DELETE FROM %[1]s_versions WHERE version IN (SELECT version FROM %[1]s_versions WHERE until_release <= $1 LIMIT %[2]d)", v.name, pruneBatch)
		for rows := int64(pruneBatch); rows == pruneBatch; {
			result, err := tx.ExecContext(ctx, statement, from)
			if err != nil {
				return 0, err
			}
			if rows, err = result.RowsAffected(); err != nil {
				return 0, err
			}
			removed += int(rows)
		}
	}
	return removed, nil
}
