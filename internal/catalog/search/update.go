package search

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"entgo.io/ent/dialect"

	"palmares/ent"
	"palmares/ent/schema"
	"palmares/ent/tool"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
)

// Fill stores the words of all tools if none are stored, or if a migration left a row that
// requests it because the words of all tools have changed.
func Fill(ctx context.Context, s *store.Store) error {
	empty, outdated, err := check(ctx, s.Read)
	if err != nil || !empty && !outdated {
		return err
	}
	return s.Exclusive(ctx, func(tx *ent.Tx) error {
		release, err := store.NewestRelease(ctx, tx.Release)
		if err != nil || release == nil {
			return err
		}
		if empty {
			return Update(ctx, tx, s.Dialect(), release.ID, nil)
		}
		slugs, err := activeTools(ctx, tx)
		if err != nil {
			return err
		}
		u := &update{tx: tx, sql: statements[s.Dialect()], inPlace: true}
		if err := u.store(ctx, slugs); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM tool_search WHERE id = -1")
		return err
	})
}

func activeTools(ctx context.Context, tx *ent.Tx) ([]string, error) {
	return tx.Tool.Query().Where(tool.RetiredAtIsNil()).Order(tool.ByID()).IDs(ctx)
}

// check reports whether there are tools and none of them is indexed, and whether the index
// is outdated.
func check(ctx context.Context, db store.Querier) (empty, outdated bool, err error) {
	err = store.ScanRows(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&empty, &outdated) },
		"SELECT EXISTS (SELECT 1 FROM tools WHERE retired_at IS NULL) AND NOT EXISTS (SELECT 1 FROM tool_search WHERE id > 0), "+
			"EXISTS (SELECT 1 FROM tool_search WHERE id = -1)")
	return empty, outdated, err
}

// batchSize is the number of tools whose texts are in memory at a time.
const batchSize = 1000

// Update stores the words of the tools that a release has created, changed, retired or
// removed. Those of earlier releases stay. If nothing is stored yet, the words of all
// tools are.
func Update(ctx context.Context, tx *ent.Tx, dialectName string, release int, slugs []string) error {
	empty, _, err := check(ctx, tx)
	if err != nil {
		return err
	}
	if empty {
		if slugs, err = activeTools(ctx, tx); err != nil {
			return err
		}
	}
	u := &update{tx: tx, sql: statements[dialectName], release: release}
	err = store.ScanRows(ctx, tx, func(rows *sql.Rows) error { return rows.Scan(&u.lastID) }, "SELECT coalesce(max(id), 0) FROM tool_search")
	if err != nil {
		return err
	}
	return u.store(ctx, slugs)
}

// store stores the words of tools.
func (u *update) store(ctx context.Context, slugs []string) error {
	for batch := range slices.Chunk(slugs, batchSize) {
		if err := u.storeWords(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// Prune removes the rows that only releases before from have, and returns how many it
// removed.
func Prune(ctx context.Context, tx *ent.Tx, from int) (removed int, err error) {
	result, err := tx.ExecContext(ctx, "DELETE FROM tool_search WHERE until_release <= $1", from)
	if err != nil {
		return 0, err
	}
	rows, err := result.RowsAffected()
	return int(rows), err
}

type update struct {
	tx      *ent.Tx
	sql     updateStatements
	release int
	lastID  int
	inPlace bool // changed words belong to the same releases as those before
}

// updateStatements are the statements of one database. They take a JSON array, because
// the SQLite driver is slow with many parameters. save and end also take the release.
type updateStatements struct{ texts, save, end, rewrite string }

// texts selects the searchable text of each tool, which is null unless the tool is
// active, and its row in the index.
const texts = `SELECT list.slug, t.name || ' ' || coalesce(t.domain, ''), t.translations, c.translations, t.name || ' ' || coalesce(t.domain, '') || ' ' || c.label || ' ' || coalesce(t.tagline, '') || ' ' ||
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
		rewrite: `UPDATE tool_search SET words = array_to_tsvector(string_to_array(item->>1, ' '))
			FROM json_array_elements($1::json) AS list (item) WHERE id = (item->>0)::integer`,
	},
	dialect.SQLite: {
		texts:   texts + `i.words FROM (SELECT value AS slug FROM json_each($1)) list` + joins,
		save:    `INSERT INTO tool_search (id, slug, words, since_release) SELECT value->>0, value->>1, value->>2, $2 FROM json_each($1)`,
		end:     `UPDATE tool_search SET until_release = $2 WHERE id IN (SELECT value FROM json_each($1))`,
		rewrite: `UPDATE tool_search SET words = value->>1 FROM json_each($1) WHERE tool_search.id = value->>0`,
	},
}

func (u *update) storeWords(ctx context.Context, slugs []string) error {
	var saved, ended, rewritten []any
	err := store.ScanRows(ctx, u.tx, func(rows *sql.Rows) error {
		var slug string
		var names, ofTool, ofCategory, content, indexed sql.NullString
		var id sql.NullInt64
		if err := rows.Scan(&slug, &names, &ofTool, &ofCategory, &content, &id, &indexed); err != nil {
			return err
		}
		english, err := englishWords(names.String, ofTool.String, ofCategory.String)
		if err != nil {
			return err
		}
		after := distinct(append(text.Words(content.String), english...))
		if content.Valid && id.Valid && slices.Equal(distinct(strings.Fields(indexed.String)), after) {
			return nil
		}
		if u.inPlace && id.Valid {
			rewritten = append(rewritten, []any{id.Int64, strings.Join(after, " ")})
			return nil
		}
		if id.Valid {
			ended = append(ended, id.Int64)
		}
		if content.Valid {
			u.lastID++
			saved = append(saved, []any{u.lastID, slug, strings.Join(after, " ")})
		}
		return nil
	}, u.sql.texts, toJSON(slugs))
	if err != nil {
		return err
	}
	if err := u.exec(ctx, u.sql.rewrite, rewritten); err != nil {
		return err
	}
	if err := u.exec(ctx, u.sql.end, ended, u.release); err != nil {
		return err
	}
	return u.exec(ctx, u.sql.save, saved, u.release)
}

func (u *update) exec(ctx context.Context, statement string, rows []any, release ...any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := u.tx.ExecContext(ctx, statement, append([]any{toJSON(rows)}, release...)...)
	return err
}

// englishWords returns the words of the English text of a tool as they are stored: its
// names and the translations of its tagline and of the label of its category. It returns
// none without translations.
func englishWords(names, ofTool, ofCategory string) (words []string, err error) {
	var t schema.ToolTranslations
	var c schema.CategoryTranslations
	if ofTool != "" {
		err = json.Unmarshal([]byte(ofTool), &t)
	}
	if ofCategory != "" {
		err = cmp.Or(err, json.Unmarshal([]byte(ofCategory), &c))
	}
	if t.En.Tagline == "" && c.En.Label == "" {
		return nil, err
	}
	for _, word := range text.Words(names + " " + t.En.Tagline + " " + c.En.Label) {
		words = append(words, translated+word)
	}
	return words, err
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
