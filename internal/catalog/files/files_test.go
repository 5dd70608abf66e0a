package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"palmares/ent"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// publishRelease imports a random release: tools are added, changed, retired, removed and
// active again, and comparisons are published and unpublished.
func publishRelease(t testing.TB, s *store.Store, release int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(release), 3))
	var records []any
	active := map[string]bool{}
	for i := range 40 {
		slug := fmt.Sprintf("outil-%02d", i)
		switch n := r.IntN(8); {
		case n == 0:
		case n == 1:
			records = append(records, &record.Retired{Slug: slug, Name: "Feu " + slug, Category: "voix", Reason: "mort", RetiredAt: "2026-01-02", Note: "Parti."})
			active[slug] = true
		default:
			active[slug] = true
			records = append(records, feedtest.Tool(slug, func(t *record.Tool) {
				t.Price = []string{"20 €/mois", "240 €/an", "3 €/image"}[r.IntN(3)]
				if r.IntN(3) == 0 {
					t.Score = nil
				}
				t.UpdatedAt = fmt.Sprintf("2026-01-%02d", release)
				t.Translations.En.Tagline = []string{"", "A tool."}[r.IntN(2)]
				t.Sections = []record.Section{{Section: "verdict", Text: fmt.Sprint("Bien ", r.IntN(2))}, {Section: "prix", Text: "Cher."}}[:r.IntN(3)]
			}))
		}
	}
	for i := range 39 {
		a, b := fmt.Sprintf("outil-%02d", i), fmt.Sprintf("outil-%02d", i+1)
		if active[a] && active[b] {
			records = append(records, &record.Comparison{Slug: a + "-vs-" + b, Title: "Duel", ToolA: a, ToolB: b, Winner: a, WinnerNote: "Mieux.",
				UpdatedAt: "2026-01-01", CanonicalURL: "https://palmares.example/duel", Published: record.Published(r.IntN(4) > 0)})
		}
	}
	feedtest.Publish(t, s, feedtest.Catalog(fmt.Sprintf("2026-01-%02d", release), records...))
}

func publishReleases(t testing.TB, s *store.Store, count int) []*ent.Release {
	t.Helper()
	for release := range count {
		publishRelease(t, s, release+1)
	}
	return releases(t, s)
}

func write(t testing.TB, s *store.Store, release int) (folder string, written []File) {
	t.Helper()
	folder = t.TempDir()
	written = check.Try(Write(t.Context(), s, release, folder, Kinds{SQLite: true, Parquet: true}, nil)).OK(t)
	check.Must(t, len(written), len(Names()), "files")
	return folder, written
}

// dump returns all rows of a SQLite database.
func dump(t testing.TB, path string) string {
	t.Helper()
	db := check.Try(sql.Open("sqlite", path)).OK(t)
	defer db.Close()
	var all strings.Builder
	for _, table := range tableNames {
		rows := check.Try(db.QueryContext(t.Context(), "SELECT * FROM "+table)).OK(t)
		columns, _ := rows.Columns()
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		fmt.Fprintln(&all, table, columns)
		for rows.Next() {
			check.OK(t, rows.Scan(values...))
			for _, v := range values {
				fmt.Fprint(&all, *v.(*any), "|")
			}
			fmt.Fprintln(&all)
		}
		check.OK(t, rows.Close())
	}
	return all.String()
}

// The files of a release are the same when it is the newest and later, and with both
// databases, until older versions are pruned.
func TestSameFiles(t *testing.T) {
	const releases = 6
	known := map[int]map[string]string{} // SHA-256 and rows
	verify := func(t *testing.T, s *store.Store, release int) {
		folder, written := write(t, s, release)
		got := map[string]string{SQLiteFile: dump(t, filepath.Join(folder, SQLiteFile))}
		for _, f := range written[1:] {
			got[f.Name] = f.SHA256
		}
		if known[release] == nil {
			known[release] = got
		} else if !maps.Equal(got, known[release]) {
			t.Errorf("release %d: got %v, want %v", release, got, known[release])
		}
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for release := 1; release <= releases; release++ {
			publishRelease(t, s, release)
			verify(t, s, release)
		}
		for release := 1; release <= releases; release++ {
			verify(t, s, release)
		}
		check.Try(publish.Prune(t.Context(), s, 4)).OK(t)
		check.Try(Write(t.Context(), s, 3, t.TempDir(), Kinds{Parquet: true}, nil)).Is(t, store.ErrNoRelease, "a pruned release")
		_, written := write(t, s, 5)
		for _, f := range written[1:] {
			same := f.SHA256 == known[5][f.Name]
			check.True(t, same != slices.Contains([]string{"history.parquet", "releases.parquet"}, f.Name), "%s after pruning: got the same content %v, want only history and releases to differ", f.Name, same)
		}
	})
}

// Columns have types, rows are sorted, and readers can skip row groups.
func TestParquetColumns(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	publishReleases(t, s, 4)
	folder, written := write(t, s, 0)
	for _, f := range written[1:] {
		file := check.Try(os.Open(filepath.Join(folder, f.Name))).OK(t)
		defer file.Close()
		p := check.Try(parquet.OpenFile(file, f.Size)).OK(t)
		if p.NumRows() != f.Rows || f.Rows == 0 {
			t.Errorf("%s: got %d rows, want %d", f.Name, p.NumRows(), f.Rows)
		}
		for _, group := range p.Metadata().RowGroups {
			check.True(t, len(group.SortingColumns) != 0, "%s: got no sorting columns, want the key", f.Name)
			for _, c := range group.Columns {
				check.True(t, c.MetaData.Statistics.MinValue != nil || c.MetaData.Statistics.NullCount == c.MetaData.NumValues, "%s: got no statistics of %v, want bounds", f.Name, c.MetaData.PathInSchema)
			}
		}
		for _, column := range p.Schema().Fields() {
			isDate := strings.HasSuffix(column.Name(), "_at") || strings.HasSuffix(column.Name(), "date")
			check.Equal(t, isDate, column.Type().String() == "DATE", "%s: for %s", f.Name, column.Name())
		}
	}
	type version struct {
		Slug         string `parquet:"slug"`
		FirstRelease int32  `parquet:"first_release"`
		LastRelease  *int32 `parquet:"last_release,optional"`
	}
	versions := check.Try(parquet.ReadFile[version](filepath.Join(folder, "history.parquet"))).OK(t)
	for i, v := range versions {
		if i > 0 && (v.Slug < versions[i-1].Slug || v.Slug == versions[i-1].Slug && *versions[i-1].LastRelease >= v.FirstRelease) {
			t.Errorf("got %s from %d after %s from %d, want them sorted and not overlapping", v.Slug, v.FirstRelease, versions[i-1].Slug, versions[i-1].FirstRelease)
		}
	}
	equal := "SELECT count(*) FROM history a JOIN history b ON b.slug = a.slug AND b.first_release = a.last_release + 1"
	for _, c := range historyTable.columns[active:] {
		equal += fmt.Sprintf(" AND a.%[1]s IS b.%[1]s", c.name)
	}
	db := check.Try(sql.Open("sqlite", filepath.Join(folder, SQLiteFile))).OK(t)
	defer db.Close()
	var n int
	check.OK(t, db.QueryRowContext(t.Context(), equal).Scan(&n))
	check.True(t, n == 0, "got %d versions with the values of the previous one, want none", n)
}

// A new field of a tool is a column of the files and of the history.
func TestColumnsOfFields(t *testing.T) {
	t.Parallel()
	type widget struct {
		Slug    string   `json:"slug" rule:"slug" column:"id"`
		Speed   *float64 `json:"speed,omitzero" rule:"0..10"`
		Checked string   `json:"checked" rule:"date"`
	}
	want := []column{{"slug", reflect.TypeFor[string](), false, false}, {"speed", reflect.TypeFor[float64](), true, false}, {"checked", reflect.TypeFor[Date](), false, false}}
	check.Slices(t, convert[widget, ent.Tool](nil).columns, want)
	for _, c := range []struct {
		record  reflect.Type
		name    string
		columns []column
	}{
		{reflect.TypeFor[record.Tool](), "tools", tools.columns}, {reflect.TypeFor[record.Tool](), "history", historyTable.columns},
		{reflect.TypeFor[record.Retired](), "retired", retired.columns}, {reflect.TypeFor[record.Retired](), "history", historyTable.columns},
		{reflect.TypeFor[record.Category](), "categories", categories.columns}, {reflect.TypeFor[record.Comparison](), "comparisons", comparisons.columns},
	} {
		for _, f := range reflect.VisibleFields(c.record) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			name := cmp.Or(columnNames[field], field)
			if indexOf(c.columns, name) < 0 && !slices.Contains([]string{"sections", "price_history", "published", "translations"}, field) {
				t.Errorf("%s.%s: got no column %s in %s, want one", c.record.Name(), f.Name, name, c.name)
			}
		}
	}
	defer func() {
		check.Contains(t, fmt.Sprint(recover()), "gadget.Parts", "want the name of the field without a column")
	}()
	type gadget struct {
		Parts []string `json:"parts,omitzero"`
	}
	convert[gadget, ent.Tool](nil)
}

// A column whose values are all null has its type, which readers need to append other files.
func TestNullColumns(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	bare := func(t *record.Tool) { t.Score, t.Verifiability, t.AvisURL = nil, nil, nil }
	check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feedtest.Catalog("2026-01-01", feedtest.Tool("a", bare)))), publish.Options{})).OK(t)
	folder, _ := write(t, s, 0)
	nulls := 0
	for _, table := range []table{toolTable, historyTable} {
		content := check.Try(os.ReadFile(filepath.Join(folder, table.name+Parquet))).OK(t)
		p := check.Try(parquet.OpenFile(bytes.NewReader(content), int64(len(content)))).OK(t)
		for i, c := range p.Schema().Fields() {
			if stored := p.Metadata().RowGroups[0].Columns[i].MetaData; stored.Statistics.NullCount == 0 {
				continue
			}
			nulls++
			want := map[reflect.Type]string{
				reflect.TypeFor[string](): "STRING", reflect.TypeFor[float64](): "DOUBLE", reflect.TypeFor[int32](): "INT(32,true)", reflect.TypeFor[Date](): "DATE",
			}[table.columns[i].kind]
			check.Equal(t, c.Name(), table.columns[i].name, table.name)
			check.Equal(t, c.Type().String(), want, table.name)
		}
	}
	check.True(t, nulls >= 10, "got %d columns that are null, want at least 10", nulls)
}

// The content of all Parquet files of a release. If it changes, increase Format.
func TestFormat(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	publishReleases(t, s, 3)
	_, written := write(t, s, 0)
	hash := sha256.New()
	for _, f := range written[1:] {
		fmt.Fprintln(hash, f.SHA256)
	}
	const want = "424c69bb085a0a4989ba868391e8603112fe73f2c01a32d5fe2a05b8bc390dca"
	got := hex.EncodeToString(hash.Sum(nil))
	check.True(t, got == want && Format == 3, "got %s in format %d, want %s in format 3", got, Format, want)
}

func TestSnappy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		text := make([]byte, r.IntN(200_000)>>r.IntN(18))
		for i := range text {
			text[i] = byte(r.IntN(2 + n%7))
			if n%3 == 0 && i > 100 && r.IntN(50) > 0 {
				text[i] = text[i-1-r.IntN(100)]
			}
		}
		packed := check.Try(new(portableSnappy).Encode(nil, text)).OK(t)
		got := check.Try(new(portableSnappy).Decode(nil, packed)).OK(t)
		check.Must(t, string(got), string(text))
	}
}

func newArchive(t testing.TB, s *store.Store, folder string, maxBytes int64) *Archive {
	a := NewArchive(s, folder, maxBytes, slog.New(slog.DiscardHandler))
	t.Cleanup(a.Close)
	return a
}

func releases(t testing.TB, s *store.Store) (all []*ent.Release) {
	t.Helper()
	all = check.Try(s.Read.Release.Query().Order(ent.Asc("number")).All(t.Context())).OK(t)
	return all
}

func entries(t testing.TB, folder string) (names []string) {
	t.Helper()
	found := check.Try(os.ReadDir(folder)).OK(t)
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

// Files are reused after a restart, unless they are damaged.
func TestArchiveVerifies(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	publishRelease(t, s, 1)
	release := releases(t, s)[0]
	set := check.Try(newArchive(t, s, folder, 1<<30).Get(t.Context(), release, 1, Requester{})).OK(t)
	path := filepath.Join(set.folder, "tools.parquet")
	whole := check.Try(os.ReadFile(path)).OK(t)
	for name, c := range map[string]struct {
		content []byte
		builds  int64
	}{
		"intact":    {whole, 0},
		"truncated": {whole[:len(whole)-1], 1},
		"changed":   {append([]byte("X"), whole[1:]...), 1},
	} {
		check.OK(t, os.WriteFile(path, c.content, 0o600))
		a := newArchive(t, s, folder, 1<<30)
		check.Try(a.Get(t.Context(), release, 1, Requester{})).OK(t)
		got, _ := os.ReadFile(path)
		check.Equal(t, string(got), string(whole), name)
		check.Equal(t, a.Built.Load(), c.builds, name)
	}
}

// An index that lists a file outside of its folder is not one of ours.
func TestArchiveStaysInFolder(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	publishRelease(t, s, 1)
	release := releases(t, s)[0]
	set := check.Try(newArchive(t, s, folder, 1<<30).Get(t.Context(), release, 1, Requester{})).OK(t)
	check.OK(t, os.Rename(filepath.Join(set.folder, SQLiteFile), filepath.Join(folder, SQLiteFile)))
	for name, damage := range map[string]func() error{
		"a link": func() error {
			return os.Symlink(filepath.Join("..", SQLiteFile), filepath.Join(set.folder, SQLiteFile))
		},
		"a path": func() error {
			index := check.Try(os.ReadFile(filepath.Join(set.folder, indexFile))).OK(t)
			return os.WriteFile(filepath.Join(set.folder, indexFile), bytes.Replace(index, []byte(SQLiteFile), []byte("../"+SQLiteFile), 1), 0o600)
		},
	} {
		check.OK(t, errors.Join(os.RemoveAll(filepath.Join(set.folder, SQLiteFile)), damage()))
		check.Try(open(set.folder)).Fails(t, name)
	}
}

// An interrupted build leaves nothing behind, and a later one succeeds.
func TestArchiveInterrupted(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	publishRelease(t, s, 1)
	release := releases(t, s)[0]
	a := newArchive(t, s, folder, 1<<30)
	_ = a.turn.Acquire(t.Context(), 1) // the build waits
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	check.Try(a.Get(waiting, release, 1, Requester{})).Is(t, context.Canceled, "while it is being written")
	a.stop()
	a.turn.Release(1)
	check.Try(a.Get(t.Context(), release, 1, Requester{})).Fails(t)
	got := entries(t, folder)
	check.True(t, len(got) == 0, "got %v, want nothing", got)
	_, err := newArchive(t, s, folder, 1<<30).Get(t.Context(), release, 1, Requester{})
	check.Equal(t, err, nil)
}

// An account waits for its own builds, not for those of others, and cannot have old
// releases written again and again.
func TestBuildsOfAccounts(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	publishReleases(t, s, 3)
	all, a := releases(t, s), newArchive(t, s, t.TempDir(), 1<<30)
	counted, refusal := 0, error(nil)
	get := func(account, release int) error {
		ended, cancel := context.WithCancel(t.Context())
		cancel() // nobody waits
		_, err := a.Get(ended, all[release-1], 1, Requester{account, func() error { counted++; return refusal }})
		return err
	}
	_ = a.turn.Acquire(t.Context(), 1) // all builds wait
	for _, c := range []struct {
		account, release, counted int
		want                      error
	}{
		{1, 1, 1, context.Canceled}, {1, 1, 1, context.Canceled}, // the same build
		{1, 2, 1, ErrBusy}, {2, 2, 2, context.Canceled}, {3, 2, 2, context.Canceled}, {3, 3, 3, context.Canceled},
	} {
		check.Is(t, get(c.account, c.release), c.want, "%+v", c)
		check.Equal(t, counted, c.counted, "%+v", c)
	}
	a.turn.Release(1)
	for _, release := range all {
		check.Try(a.Get(t.Context(), release, 1, Requester{})).OK(t)
	}
	check.OK(t, os.RemoveAll(a.folder)) // as if others had needed the room
	refusal = errors.New("the quota is used up")
	check.Equal(t, get(1, 1), refusal)
	check.Equal(t, a.Built.Load(), 3)
	refusal, counted = nil, 0
	a.starts[1] = slices.Repeat([]time.Time{time.Now()}, maxBuildsPerHour)
	check.Equal(t, get(1, 1), error(ErrTooMany))
	check.Equal(t, counted, 0)
	a.starts[1] = slices.Repeat([]time.Time{time.Now().Add(-time.Hour)}, maxBuildsPerHour)
	check.Is(t, get(1, 1), context.Canceled, "after an hour")
}

// The oldest files make room for new ones.
func TestArchiveLimit(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	all := publishReleases(t, s, 3)
	first := check.Try(newArchive(t, s, folder, 1<<30).Get(t.Context(), all[0], 1, Requester{})).OK(t)
	check.OK(t, os.WriteFile(filepath.Join(folder, "README"), []byte("not ours"), 0o600))
	a := newArchive(t, s, folder, 5*first.size()/2)
	for _, release := range append(all, all[0]) {
		set := check.Try(a.Get(t.Context(), release, 1, Requester{})).OK(t)
		if file, _, err := set.Open(SQLiteFile); err != nil {
			t.Error(err)
		} else {
			_ = file.Close()
		}
	}
	if got := entries(t, folder); len(got) != 3 || a.Find(all[1], 1) != nil || a.Find(all[2], 1) == nil || a.Find(all[0], 1) == nil || a.Built.Load() != 3 {
		t.Errorf("got %v after %d builds, want the first and third release and the operator's file after 3", got, a.Built.Load())
	}
	check.Try(newArchive(t, s, t.TempDir(), 1000).Get(t.Context(), all[0], 1, Requester{})).Is(t, ErrTooLarge)
}

// The newest files stay when others make room, and pruning removes what it touches.
func TestArchivePrepares(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	all := publishReleases(t, s, 4)
	largest := check.Try(newArchive(t, s, folder, 1<<30).Get(t.Context(), all[3], 1, Requester{})).OK(t)
	a := newArchive(t, s, folder, 5*largest.size()/2)
	a.Prepare(t.Context(), all[3])
	for _, release := range all[:3] {
		check.Try(a.Get(t.Context(), release, 1, Requester{})).OK(t)
	}
	if a.Find(all[3], 1) == nil || a.Find(all[2], 1) == nil || len(entries(t, folder)) != 2 {
		t.Errorf("got %v, want the newest files and the last ones", entries(t, folder))
	}
	check.Try(publish.Prune(t.Context(), s, 3)).OK(t)
	newest := check.Try(s.CurrentRelease(t.Context())).OK(t)
	a.Prepare(t.Context(), newest)
	got := entries(t, folder)
	check.Must(t, len(got), 1, "%v after pruning", got)
	check.True(t, a.Find(newest, 3) != nil && strings.HasPrefix(got[0], "4-3-"), "got %v after pruning, want the newest files without older releases", got)
}

// The newest files stay even if the limit is too small for any others, and are replaced
// when they are damaged.
func TestArchiveForOneRelease(t *testing.T) {
	t.Parallel()
	s, folder := testkit.Open(t, testkit.SQLite(t)), t.TempDir()
	all := publishReleases(t, s, 2)
	a := newArchive(t, s, folder, 1<<30)
	a.Prepare(t.Context(), all[1])
	newest := a.Find(all[1], 1)
	a.maxBytes = 3 * newest.size() / 2
	check.Try(a.Get(t.Context(), all[0], 1, Requester{})).Is(t, ErrTooLarge, "an earlier release")
	if a.Find(all[1], 1) == nil || len(entries(t, folder)) != 1 {
		t.Errorf("got %v, want the newest files alone", entries(t, folder))
	}
	check.OK(t, os.WriteFile(filepath.Join(newest.folder, indexFile), nil, 0o600))
	a = newArchive(t, s, folder, a.maxBytes)
	if a.Prepare(t.Context(), all[1]); a.Find(all[1], 1) == nil || a.Built.Load() != 1 {
		t.Errorf("got %v after %d builds, want the newest files after 1", entries(t, folder), a.Built.Load())
	}
}

// A full disk is an error, and leaves nothing behind.
func TestArchiveFullDisk(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.SQLite(t))
	publishRelease(t, s, 1)
	for _, size := range []int{16 << 10, 64 << 10} { // a Parquet file or SQLite does not fit
		folder := testkit.SmallDisk(t, size)
		check.Try(newArchive(t, s, folder, 1<<30).Get(t.Context(), releases(t, s)[0], 1, Requester{})).Fails(t, "files on a disk of %d bytes", size)
		got := entries(t, folder)
		check.True(t, len(got) == 0, "got %v on the full disk, want nothing", got)
	}
}
