// Package files writes releases of the catalog as files: each table as Parquet, and
// all of them as a SQLite database. It knows nothing of HTTP.
//
// A file of a release has nothing that was not known then, and no time of publication.
// Parquet files of the same release therefore have the same bytes on every server and
// with both databases. Start reading at Write; Archive keeps the files on disk.
package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
)

// Format is the version of the files. Increase it with every change of what Write
// writes for the same release, also by a new version of a library.
const Format = 3

// SQLiteFile is the name of the database with all tables.
const SQLiteFile = "catalog.sqlite"

// Parquet is the extension of the other files.
const Parquet = ".parquet"

// File describes a file.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Kinds selects what Write writes.
type Kinds struct{ SQLite, Parquet bool }

// Names returns the names of all files, in the order in which they are listed.
func Names() []string {
	names := []string{SQLiteFile}
	for _, table := range tableNames {
		names = append(names, table+Parquet)
	}
	return names
}

// Write writes files of a release, the newest one if asOf is 0, to a folder. It calls
// check from time to time with the size of what it has written, and stops if that
// returns an error.
func Write(ctx context.Context, s *store.Store, asOf int, folder string, kinds Kinds, check func(size int64) error) (files []File, err error) {
	err = s.Snapshot(ctx, func(db *ent.Client, newest *ent.Release) error {
		if newest == nil {
			return publish.ErrEmptyCatalog
		}
		if err := store.CheckReadable(cmp.Or(asOf, newest.ID), newest); err != nil {
			return err
		}
		w := &writer{folder: folder, kinds: kinds, check: check, rows: map[string]int64{}}
		w.reader = reader{ctx: ctx, db: db, release: cmp.Or(asOf, newest.ID), from: newest.HistoryFrom}
		slugs, err := db.Tool.Query().Order(tool.ByID()).IDs(ctx)
		if err != nil {
			return err
		}
		w.slugs = everyBatch(slugs)
		files, err = w.write()
		return err
	})
	return files, err
}

// writer writes the files of one release, table by table.
type writer struct {
	reader
	folder string
	kinds  Kinds
	check  func(size int64) error
	sqlite *database // nil if it is not written
	rows   map[string]int64
}

func (w *writer) write() (files []File, err error) {
	if w.kinds.SQLite {
		if w.sqlite, err = createDatabase(w.ctx, w.path(SQLiteFile)); err != nil {
			return nil, err
		}
		defer func() { _ = w.sqlite.Close() }() // again if it was closed
	}
	if err := w.writeTables(); err != nil {
		return nil, err
	}
	var total int64
	for _, table := range tableNames {
		total += w.rows[table]
		if w.kinds.Parquet {
			files = append(files, File{Name: table + Parquet, Rows: w.rows[table]})
		}
	}
	if w.sqlite != nil {
		if err := w.sqlite.finish(); err != nil {
			return nil, err
		}
		files = slices.Insert(files, 0, File{Name: SQLiteFile, Rows: total})
	}
	for i := range files {
		if err := files[i].finish(w.folder); err != nil {
			return nil, err
		}
	}
	return files, w.checkSize() // also of what was buffered
}

func (w *writer) path(name string) string { return filepath.Join(w.folder, name) }

// finish makes sure that a file is on disk, and completes its description.
func (f *File) finish(folder string) error {
	file, err := os.OpenFile(filepath.Join(folder, f.Name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.Size, f.SHA256, err = digest(file); err != nil {
		return err
	}
	return file.Sync()
}

func digest(r io.Reader) (size int64, sum string, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

// checkSize calls check with the size of all files in the folder.
func (w *writer) checkSize() error {
	if w.check == nil {
		return nil
	}
	size, err := folderSize(w.folder)
	if err != nil {
		return err
	}
	return w.check(size)
}

func folderSize(folder string) (size int64, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && !strings.HasPrefix(entry.Name(), ".") {
			size += info.Size()
		}
	}
	return size, err
}
