package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"entgo.io/ent/dialect"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
)

// Fill indexes all tools if the index is empty, as it is after a migration.
func Fill(ctx context.Context, s *store.Store) error {
	if empty, err := isEmpty(ctx, s.Read); err != nil || !empty {
		return err
	}
	return s.Exclusive(ctx, func(tx *ent.Tx) error {
		release, err := store.NewestRelease(ctx, tx.Release)
		if err != nil || release == nil {
			return err
		}
		return Update(ctx, tx, s.Dialect(), release.ID, nil)
	})
}

// isEmpty reports whether there are tools and none of them is indexed.
func isEmpty(ctx context.Context, db store.Querier) (empty bool, err error) {
	err = store.ScanRows(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&empty) },
		"SELECT EXISTS (SELECT 1 FROM tools WHERE retired_at IS NULL) AND NOT EXISTS (SELECT 1 FROM tool_search)")
	return empty, err
}

const (
	batchSize = 1000 // tools; SQLite writes a part of the index for each batch
	wordBatch = 5000 // words of the vocabulary
)

// Update updates the index for the tools that a release has created, changed, retired
// or removed. Rows of earlier releases stay in the index. If the index is still
// empty, all tools are indexed.
func Update(ctx context.Context, tx *ent.Tx, dialectName string, release int, slugs []string) error {
	empty, err := isEmpty(ctx, tx)
	if err != nil {
		return err
	}
	if empty {
		if slugs, err = tx.Tool.Query().Where(tool.RetiredAtIsNil()).Order(tool.ByID()).IDs(ctx); err != nil {
			return err
		}
	}
	u := &update{tx: tx, sql: statements[dialectName], release: release, counts: map[string]int{}}
	err = store.ScanRows(ctx, tx, func(rows *sql.Rows) error { return rows.Scan(&u.lastID) }, "SELECT coalesce(max(id), 0) FROM tool_search")
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(slugs, batchSize) {
		if err := u.indexTools(ctx, batch); err != nil {
			return err
		}
	}
	if err := u.countWords(ctx); err != nil {
		return err
	}
	if u.written*100 > u.sql.mergeFrom*u.lastID {
		_, err = tx.ExecContext(ctx, u.sql.merge)
	}
	return err
}

// Prune removes the rows that only releases before from have, and returns how many it
// removed.
func Prune(ctx context.Context, tx *ent.Tx, dialectName string, from int) (removed int, err error) {
	u := &update{tx: tx, sql: statements[dialectName]}
	for {
		rows, err := u.pruneBatch(ctx, from)
		if err != nil {
			return 0, err
		}
		if rows == 0 {
			break
		}
		removed += rows
	}
	if removed == 0 {
		return 0, nil
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM search_words WHERE tools < 1"); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, u.sql.merge)
	return removed, err
}

// pruneBatch removes some of these rows, and returns how many.
func (u *update) pruneBatch(ctx context.Context, from int) (int, error) {
	u.counts = map[string]int{}
	var ids []any
	err := store.ScanRows(ctx, u.tx, func(rows *sql.Rows) error {
		var id int
		var words string
		if err := rows.Scan(&id, &words); err != nil {
			return err
		}
		ids = append(ids, id)
		for word := range strings.FieldsSeq(words) {
			u.counts[word]--
		}
		return nil
	}, u.sql.ended, from, batchSize)
	if err != nil {
		return 0, err
	}
	if err := u.exec(ctx, u.sql.remove, ids); err != nil {
		return 0, err
	}
	return len(ids), u.countWords(ctx)
}

type update struct {
	tx      *ent.Tx
	sql     updateStatements
	release int
	lastID  int
	written int            // tools
	counts  map[string]int // change in the number of rows that have each word
}

// updateStatements are the statements of one database. Most take a JSON array,
// because the SQLite driver is slow with many parameters. save and end also take
// the release. ended takes a release and a limit, and selects rows that neither
// this release nor a later one has.
type updateStatements struct {
	texts, save, end, count string
	ended, remove           string
	// merge merges pending changes into the index. The database would do it later,
	// and searches are slower until then. mergeFrom is the percentage of changed
	// tools from which it pays off.
	merge     string
	mergeFrom int
}

// texts selects the searchable text of each tool, which is null unless the tool is
// active, and its row in the index.
const texts = `SELECT list.slug, t.name || ' ' || coalesce(t.domain, '') || ' ' || c.label || ' ' || coalesce(t.tagline, '') || ' ' ||
		coalesce((SELECT string_agg(s.text, ' ') FROM sections s WHERE s.tool_slug = t.slug), ''), i.id, `

const joins = ` LEFT JOIN tools t ON t.slug = list.slug AND t.retired_at IS NULL
		LEFT JOIN categories c ON c.slug = t.category_slug
		LEFT JOIN tool_search i ON i.slug = list.slug AND i.until_release = 2147483647`

var statements = map[string]updateStatements{
	dialect.Postgres: {
		texts: texts + `array_to_string(tsvector_to_array(i.words), ' ') FROM json_array_elements_text($1::json) AS list (slug)` + joins,
		save: `INSERT INTO tool_search (id, slug, words, since_release)
			SELECT (item->>0)::integer, item->>1, array_to_tsvector(string_to_array(item->>2, ' ')), $2 FROM json_array_elements($1::json) AS list (item)`,
		end: `UPDATE tool_search SET until_release = $2 WHERE id IN (SELECT value::integer FROM json_array_elements_text($1::json))`,
		count: `INSERT INTO search_words (word, tools) SELECT item->>0, (item->>1)::integer FROM json_array_elements($1::json) AS list (item)
			ON CONFLICT (word) DO UPDATE SET tools = search_words.tools + excluded.tools`,
		ended:  `SELECT id, array_to_string(tsvector_to_array(words), ' ') FROM tool_search WHERE until_release <= $1 LIMIT $2`,
		remove: `DELETE FROM tool_search WHERE id IN (SELECT value::integer FROM json_array_elements_text($1::json))`,
		// Only the index's owner may call the function.
		merge: `SELECT gin_clean_pending_list(oid) FROM pg_class WHERE oid = 'tool_search_by_words'::regclass AND pg_has_role(relowner, 'USAGE')`,
	},
	dialect.SQLite: {
		texts: texts + `i.words FROM (SELECT value AS slug FROM json_each($1)) list` + joins,
		save:  `INSERT INTO tool_search (id, slug, words, since_release) SELECT value->>0, value->>1, value->>2, $2 FROM json_each($1)`,
		end:   `UPDATE tool_search SET until_release = $2 WHERE id IN (SELECT value FROM json_each($1))`,
		count: `INSERT INTO search_words (word, tools) SELECT value->>0, value->>1 FROM json_each($1) WHERE true
			ON CONFLICT (word) DO UPDATE SET tools = search_words.tools + excluded.tools`,
		ended:  `SELECT id, words FROM tool_search WHERE until_release <= $1 LIMIT $2`,
		remove: `DELETE FROM tool_search WHERE id IN (SELECT value FROM json_each($1))`,
		merge:  `INSERT INTO tool_search_index (tool_search_index) VALUES ('optimize')`, mergeFrom: 10,
	},
}

func (u *update) indexTools(ctx context.Context, slugs []string) error {
	var saved, ended []any
	err := store.ScanRows(ctx, u.tx, func(rows *sql.Rows) error {
		var slug string
		var content, indexed sql.NullString
		var id sql.NullInt64
		if err := rows.Scan(&slug, &content, &id, &indexed); err != nil {
			return err
		}
		after := distinct(text.Words(content.String))
		if content.Valid && id.Valid && slices.Equal(distinct(strings.Fields(indexed.String)), after) {
			return nil
		}
		if id.Valid {
			ended = append(ended, id.Int64)
		}
		if content.Valid {
			u.lastID++
			saved = append(saved, []any{u.lastID, slug, strings.Join(after, " ")})
			for _, word := range after {
				u.counts[word]++
			}
		}
		return nil
	}, u.sql.texts, toJSON(slugs))
	if err != nil {
		return err
	}
	u.written += len(saved)
	if err := u.exec(ctx, u.sql.end, ended, u.release); err != nil {
		return err
	}
	return u.exec(ctx, u.sql.save, saved, u.release)
}

// countWords updates the vocabulary.
func (u *update) countWords(ctx context.Context) error {
	for words := range slices.Chunk(slices.Sorted(maps.Keys(u.counts)), wordBatch) {
		rows := make([]any, len(words))
		for i, word := range words {
			rows[i] = []any{word, u.counts[word]}
		}
		if err := u.exec(ctx, u.sql.count, rows); err != nil {
			return err
		}
	}
	return nil
}

func (u *update) exec(ctx context.Context, statement string, rows []any, args ...any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := u.tx.ExecContext(ctx, statement, append([]any{toJSON(rows)}, args...)...)
	return err
}

func toJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(data)
}

func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
