package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"palmares/internal/core/store"
)

type backupCommand struct {
	File string `arg:"" help:"Where to write it; what is there is replaced when the new one is whole."`
}

// Run writes a copy of the embedded database, also while a server uses it.
func (c *backupCommand) Run(ctx context.Context, s *settings, term terminal) error {
	if s.DatabaseURL != "" {
		return store.ErrNotEmbedded
	}
	db, err := store.Open(ctx, store.Config{DataDir: s.DataDir, MustExist: true})
	if err != nil {
		return err
	}
	defer db.Close()
	if isSpecial(c.File) || samePlace(c.File, store.File(s.DataDir)) {
		return fmt.Errorf("%s: a backup cannot be put there", c.File)
	}
	size, err := writeBackup(ctx, db, c.File)
	var path *os.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) {
		return fmt.Errorf("%s: %s", c.File, fileProblem(err))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(term.out, "%s: %d bytes\n", c.File, size)
	return err
}

// writeBackup writes beside the file, and puts it in its place when it is on
// disk. Like the database, it is for its owner alone.
func writeBackup(ctx context.Context, db *store.Store, name string) (size int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".palmares-")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
			_ = os.Remove(file.Name() + "-journal") // of one that was cut short
		}
	}()
	if err := db.Backup(ctx, file.Name()); err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(file.Name(), name)
}

func samePlace(a, b string) bool {
	first, err := os.Stat(a)
	second, missing := os.Stat(b)
	return err == nil && missing == nil && os.SameFile(first, second)
}
