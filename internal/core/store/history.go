package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"

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

// Archive copies the rows with the given keys to the history, before a release
// changes or removes them. Rows that this release itself has written are not copied.
func (v Versioned) Archive(ctx context.Context, tx *ent.Tx, dialectName string, release int, keys []string) error {
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

// asOf rewrites a statement to read an earlier release. Table names then refer to
// views of the rows at that release: rows from the history, and rows that have not
// changed since.
func asOf(dialectName string, release int, statement string) string {
	var views []string
	for _, v := range versioned {
		if !strings.Contains(statement, v.name) {
			continue
		}
		// A view of the same name hides the table, except in its own definition. There,
		// SQLite requires the schema name, and treats a union that ends with the table as
		// recursive.
		keyword, table := "AS NOT MATERIALIZED", v.name
		if dialectName == dialect.SQLite {
			keyword, table = "AS", "main."+v.name
		}
		columns, number := strings.Join(v.columns, ", "), strconv.Itoa(release)
		views = append(views, fmt.Sprintf("%s %s (SELECT %s FROM %s WHERE since_release <= %s UNION ALL SELECT %[3]s FROM %[1]s_versions WHERE since_release <= %[5]s AND until_release > %[5]s)",
			v.name, keyword, columns, table, number))
	}
	if len(views) == 0 {
		return statement
	}
	return "WITH " + strings.Join(views, ", ") + " " + statement
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
