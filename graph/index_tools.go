package graph

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/search"
)

// toolColumns are the columns that the index holds. Most of them are joined with
// tabs, which none of them contains, because the driver's overhead for each column
// is larger than the database's for joining them.
const toolColumns = `slug, name_key, score, verifiability, obsolescence, price_amount, coalesce(price_period, ''),
	category_slug || '	' || coalesce(updated_at, '') || '	' || coalesce(retired_at, '') || '	' || coalesce(pricing, '') || '	' ||
	coalesce(icp, '') || '	' || coalesce(retired_reason, '') || '	' || CAST(coalesce(tier, 0) AS text) || '	' || CAST(since_release AS text) || '	' ||
	fingerprint || ' ' || coalesce(sections_hash, '') || ' ' || coalesce(history_hash, '') || CASE WHEN in_embeddings THEN '` + embeddingsMark + `' ELSE '' END`

// embeddingsMark ends the version strings of tools with an embeddings document.
const embeddingsMark = " embeddings"

// readTools reads tools, ordered by slug, and shares unchanged ones with another
// index.
func readTools(ctx context.Context, catalog Catalog, other *catalogIndex, from string, args ...any) (tools []*indexedTool, err error) {
	rows, err := catalog.Select(ctx, "SELECT "+toolColumns+" FROM "+from, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	err = scanTools(rows, nil, func(t *indexedTool) { tools = append(tools, t) })
	slices.SortFunc(tools, func(a, b *indexedTool) int { return strings.Compare(a.slug, b.slug) })
	share(tools, other)
	return tools, err
}

// scanTools calls add with each row of toolColumns. More columns may follow.
func scanTools(rows entsql.ColumnScanner, more []any, add func(*indexedTool)) error {
	repeated, billing := interner{}, map[string]string{} // by period
	var joined sql.RawBytes
	var period string
	for rows.Next() {
		t := &indexedTool{}
		columns := []any{&t.slug, &t.nameKey, numberOrNaN{&t.score}, numberOrNaN{&t.verifiability}, numberOrNaN{&t.obsolescence}, numberOrNaN{&t.price}, repeated.scan(&period), &joined}
		if err := rows.Scan(append(columns, more...)...); err != nil {
			return err
		}
		rest := []byte(joined)
		next := func() (column []byte) {
			column, rest, _ = bytes.Cut(rest, []byte("\t"))
			return column
		}
		for _, text := range []*string{&t.category, &t.updatedAt, &t.retiredAt, (*string)(&t.pricing), &t.icp, (*string)(&t.reason), &t.tier} {
			*text = repeated.share(next())
		}
		since, err := strconv.Atoi(string(next()))
		if err != nil {
			return fmt.Errorf("read tool %s: %w", t.slug, err)
		}
		if _, known := billing[period]; !known {
			billing[period] = pricing.Period(period)
		}
		t.monthlyPrice = pricing.Monthly(t.price, billing[period])
		t.since, t.version, t.inEmbeddings = since, maphash.Bytes(versionSeed, rest), bytes.HasSuffix(rest, []byte(embeddingsMark))
		add(t)
	}
	return rows.Err()
}

// share replaces unchanged tools with those of another index, and equal names with
// one copy. Both are ordered by slug.
func share(tools []*indexedTool, other *catalogIndex) {
	var known []*indexedTool
	if other != nil {
		known = other.tools
	}
	for i, t := range tools {
		for len(known) > 0 && known[0].slug < t.slug {
			known = known[1:]
		}
		if len(known) > 0 && known[0].slug == t.slug {
			if known[0].version == t.version && known[0].since == t.since {
				tools[i] = known[0]
				continue
			}
			if t.slug = known[0].slug; t.nameKey == known[0].nameKey {
				t.nameKey, t.searchName = known[0].nameKey, known[0].searchName
				continue
			}
		}
		if t.searchName = search.Key(t.nameKey); t.searchName == t.nameKey {
			t.searchName = t.nameKey // one copy in memory
		}
	}
}

var versionSeed = maphash.MakeSeed()

// versionOf identifies the content of an entity within this process, in the same
// way as readTools.
func versionOf(fingerprint, sectionsHash, historyHash string, inEmbeddings bool) uint64 {
	text := fingerprint + " " + sectionsHash + " " + historyHash
	if inEmbeddings {
		text += embeddingsMark
	}
	return maphash.String(versionSeed, text)
}

// interner shares strings that repeat often.
type interner map[string]string

func (n interner) share(text []byte) string {
	known, ok := n[string(text)]
	if !ok {
		known = string(text)
		n[known] = known
	}
	return known
}

type interned struct {
	known interner
	text  *string
}

func (n interner) scan(text *string) interned { return interned{n, text} }

// Scan implements sql.Scanner.
func (i interned) Scan(value any) error {
	switch v := value.(type) {
	case string:
		*i.text = i.known.share([]byte(v))
	case []byte:
		*i.text = i.known.share(v)
	default:
		return fmt.Errorf("got %T, want text", value)
	}
	return nil
}

// numberOrNaN scans a number that may be null.
type numberOrNaN struct{ number *float64 }

// Scan implements sql.Scanner.
func (n numberOrNaN) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*n.number = math.NaN()
	case float64:
		*n.number = v
	default:
		var number sql.Null[float64]
		err := number.Scan(value)
		*n.number = number.V
		return err
	}
	return nil
}
