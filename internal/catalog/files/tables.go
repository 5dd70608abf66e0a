package files

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	entrelease "palmares/ent/release"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/core/store"
)

// table declares a table: its name, its columns, and those that it is sorted by and that
// identify a row.
type table struct {
	name    string
	columns []column
	key     []string
}

var (
	toolTable       = table{"tools", tools.columns, []string{"slug"}}
	categoryTable   = table{"categories", categories.columns, []string{"slug"}}
	comparisonTable = table{"comparisons", comparisons.columns, []string{"slug"}}
	retiredTable    = table{"retired", retired.columns, []string{"slug"}}
	priceTable      = table{"prices", declared[priceRow](), []string{"tool_slug", "position"}}
	reviewTable     = table{"reviews", declared[reviewRow](), []string{"tool_slug", "position"}}
	historyTable    = table{"history", historyColumns(), []string{"slug", "first_release"}}
	releaseTable    = table{"releases", declared[releaseRow](), []string{"number"}}
)

// tableNames are the names of all tables, in the order of the files.
var tableNames = []string{
	toolTable.name, categoryTable.name, comparisonTable.name, retiredTable.name, priceTable.name, reviewTable.name, historyTable.name, releaseTable.name,
}

// writeTables writes all tables. Tools, retired tools and their history are read
// together, because that takes half of the time.
func (w *writer) writeTables() error {
	for _, t := range []struct {
		table table
		read  func(add func(row) error) error
	}{
		{categoryTable, w.categories}, {comparisonTable, w.comparisons}, {priceTable, w.prices}, {reviewTable, w.reviews}, {releaseTable, w.releases},
	} {
		if err := w.create(t.table, t.read); err != nil {
			return err
		}
	}
	return w.create(toolTable, func(addTool func(row) error) error {
		return w.create(retiredTable, func(addRetired func(row) error) error {
			return w.create(historyTable, func(addVersion func(row) error) error { return w.history(addTool, addRetired, addVersion) })
		})
	})
}

const (
	// batchSize is how many rows are read and converted at a time.
	batchSize = 500
	// rowGroup limits the memory that is needed to write and to read a Parquet file.
	rowGroup = 20_000
	pageSize = 64 << 10
)

// create writes a table with the rows that read adds.
func (w *writer) create(t table, read func(add func(row) error) error) (err error) {
	var out *parquetFile
	if w.kinds.Parquet {
		if out, err = createParquet(w.path(t.name+Parquet), t); err != nil {
			return err
		}
		defer func() { _ = out.file.Close() }() // again if it was closed
	}
	var insert func(row) error
	if w.sqlite != nil {
		if insert, err = w.sqlite.insertInto(t); err != nil {
			return err
		}
	}
	batch, size := make([]parquet.Row, batchSize), 0
	flush := func() error {
		if out != nil {
			if _, err := out.WriteRows(batch[:size]); err != nil {
				return err
			}
		}
		w.rows[t.name] += int64(size)
		size = 0
		return w.checkSize()
	}
	err = read(func(r row) error {
		if insert != nil {
			if err := insert(r); err != nil {
				return err
			}
		}
		if out != nil {
			batch[size] = r.toParquet(t.columns, batch[size][:0])
		}
		if size++; size == batchSize {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil && out != nil {
		err = out.finish()
	}
	return err
}

type parquetFile struct {
	*parquet.GenericWriter[any]
	file   *os.File
	buffer *bufio.Writer
}

func createParquet(path string, t table) (*parquetFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	var sorting []parquet.SortingColumn
	for _, column := range t.key {
		sorting = append(sorting, parquet.Ascending(column))
	}
	buffer := bufio.NewWriterSize(file, 64<<10)
	return &parquetFile{parquet.NewGenericWriter[any](buffer, schemaOf(t.columns),
		parquet.CreatedBy("palmares", "1", ""), // the same for every version of the program
		parquet.Compression(&portableSnappy{}), // every reader knows it, also small ones in JavaScript
		parquet.MaxRowsPerRowGroup(rowGroup), parquet.PageBufferSize(pageSize), parquet.DictionaryMaxBytes(1<<20),
		parquet.SortingWriterConfig(parquet.SortingColumns(sorting...)),
	), file, buffer}, nil
}

func (p *parquetFile) finish() error {
	return cmp.Or(p.Close(), p.buffer.Flush(), p.file.Close())
}

// reader reads the rows of a release.
type reader struct {
	ctx     context.Context
	db      *ent.Client
	release int
	from    int      // the oldest release that can be read
	slugs   []string // of tools, the last of each batch
}

func (s reader) releases(add func(row) error) error {
	rows, err := s.db.Release.Query().Where(entrelease.IDGTE(s.from), entrelease.IDLTE(s.release)).Order(entrelease.ByID()).All(s.ctx)
	for _, row := range rows {
		if err := add(valuesOf(releaseRow{int32(row.ID), dateOf(row.FeedDate)})); err != nil { //nolint:gosec // counts imports
			return err
		}
	}
	return err
}

func (s reader) categories(add func(row) error) error {
	rows, err := s.db.Category.Query().Where(store.Categories.At(s.release)).Order(category.ByID()).All(s.ctx)
	for _, row := range rows {
		if err := add(categories.read(row)); err != nil {
			return err
		}
	}
	return err
}

func (s reader) comparisons(add func(row) error) error {
	ids, err := s.db.Comparison.Query().Order(comparison.ByID()).IDs(s.ctx)
	if err != nil {
		return err
	}
	return inRanges(everyBatch(ids), func(after, upTo string) ([]*ent.Comparison, error) {
		return s.db.Comparison.Query().Where(store.Comparisons.At(s.release), comparison.IDGT(after), comparison.IDLTE(upTo), comparison.Published(true)).All(s.ctx)
	}, func(a, b *ent.Comparison) int { return strings.Compare(a.ID, b.ID) },
		func(row *ent.Comparison) error { return add(comparisons.read(row)) })
}

// everyBatch returns the last ID of each batch but the last one.
func everyBatch(ids []string) (last []string) {
	for i := batchSize; i < len(ids); i += batchSize {
		last = append(last, strings.Clone(ids[i]))
	}
	return last
}

// version is a tool, and the release that replaced it or 0.
type version struct {
	*ent.Tool
	until int
}

func compareVersions(a, b version) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), a.SinceRelease-b.SinceRelease)
}

// versions reads the current rows apart from the others, because ent takes twice as long
// for rows with columns that it does not know.
func (s reader) versions(after, upTo string) (all []version, err error) {
	current, err := s.db.Tool.Query().Where(tool.SinceReleaseLTE(s.release), tool.IDGT(after), tool.IDLTE(upTo)).All(s.ctx)
	if err != nil {
		return nil, err
	}
	earlier, err := s.db.Tool.Query().Where(store.Tools.Earlier(s.release), tool.IDGT(after), tool.IDLTE(upTo)).All(s.ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range current {
		all = append(all, version{row, 0})
	}
	for _, row := range earlier {
		_, until, err := store.HistoryColumns(row)
		if err != nil {
			return nil, err
		}
		all = append(all, version{row, until})
	}
	return all, nil
}

func (s reader) prices(add func(row) error) error {
	last, position := "", 0
	return inRanges(s.slugs, func(after, upTo string) ([]*ent.PriceChange, error) {
		return s.db.PriceChange.Query().Where(store.PriceChanges.At(s.release), pricechange.ToolSlugGT(after), pricechange.ToolSlugLTE(upTo)).All(s.ctx)
	}, func(a, b *ent.PriceChange) int {
		return cmp.Or(strings.Compare(a.ToolSlug, b.ToolSlug), strings.Compare(a.ChangedAt, b.ChangedAt), a.ID-b.ID)
	}, func(row *ent.PriceChange) error {
		if row.ToolSlug != last {
			last, position = row.ToolSlug, 0
		}
		position++
		return add(valuesOf(newPrice(row, position-1)))
	})
}

func (s reader) reviews(add func(row) error) error {
	return inRanges(s.slugs, func(after, upTo string) ([]*ent.Section, error) {
		return s.db.Section.Query().Where(store.Sections.At(s.release), section.ToolSlugGT(after), section.ToolSlugLTE(upTo)).All(s.ctx)
	}, func(a, b *ent.Section) int {
		return cmp.Or(strings.Compare(a.ToolSlug, b.ToolSlug), a.Position-b.Position)
	},
		func(row *ent.Section) error { return add(valuesOf(newReview(row))) })
}

// history reads all versions of tools, and those of the release itself.
func (s reader) history(addTool, addRetired, addVersion func(row) error) error {
	dates := map[int32]Date{} // also of releases that can no longer be read: versions may have started then
	releases, err := s.db.Release.Query().Where(entrelease.IDLTE(s.release)).All(s.ctx)
	if err != nil {
		return err
	}
	for _, r := range releases {
		dates[int32(r.ID)] = dateOf(r.FeedDate) //nolint:gosec // counts imports
	}
	var last row // not yet passed on
	err = inRanges(s.slugs, s.versions, compareVersions, func(stored version) error {
		from, places, add := tools, toolPlaces, addTool
		if stored.RetiredAt != "" {
			from, places, add = retired, retiredPlaces, addRetired
		}
		v, values, since := make(row, len(historyTable.columns)), from.read(stored.Tool), int32(stored.SinceRelease) //nolint:gosec // counts imports
		for i, place := range places {
			v[place] = values[i]
		}
		v[firstRelease], v[firstDate], v[active] = since, dates[since], stored.RetiredAt == ""
		if stored.RetiredAt == "" {
			v[hashPlace] = stored.SectionsHash
		}
		if stored.until > 0 && stored.until <= s.release {
			until := int32(stored.until - 1) //nolint:gosec // counts imports
			v[lastRelease], v[lastDate] = until, dates[until]
		} else if err := add(values); err != nil {
			return err
		}
		if v.continues(last) {
			last[lastRelease], last[lastDate] = v[lastRelease], v[lastDate]
			return nil
		}
		last, v = v, last
		if v == nil {
			return nil
		}
		return addVersion(v)
	})
	if err != nil || last == nil {
		return err
	}
	return addVersion(last)
}

// continues reports whether a version has the same values as the one before it, which
// ended when it began: an import also rewrites rows for what the files do not have.
func (r row) continues(before row) bool {
	if before == nil || before[0] != r[0] || before[lastRelease] == nil || before[lastRelease].(int32)+1 != r[firstRelease] {
		return false
	}
	return slices.Equal(r[lastDate+1:], before[lastDate+1:])
}

// inRanges calls each with all rows in the order that compare defines. query returns
// the rows after a slug and up to another one. Its statement neither sorts nor limits
// them: with the history, databases would sort all rows for each page.
func inRanges[Row any](slugs []string, query func(after, upTo string) ([]Row, error), compare func(a, b Row) int, each func(Row) error) error {
	after := ""
	for _, upTo := range append(slices.Clip(slugs), afterAll) {
		rows, err := query(after, upTo)
		if err != nil {
			return err
		}
		slices.SortFunc(rows, compare)
		for _, row := range rows {
			if err := each(row); err != nil {
				return err
			}
		}
		after = upTo
	}
	return nil
}

// afterAll comes after all slugs.
const afterAll = "~"
