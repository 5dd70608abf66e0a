package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"palmares/internal/catalog/feed"
)

// fileProblem says in our words what is wrong with a file.
func fileProblem(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or folder"
	case errors.Is(err, fs.ErrPermission):
		return "may not be opened"
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return "is a directory"
	case errors.Is(err, syscall.EPIPE):
		return "nobody reads it any more"
	}
	return "cannot be read or written"
}

// writeFeed writes to standard output or to a file: a regular one whole or
// not at all, anything else, such as a device or a pipe, as it comes.
func writeFeed(name string, stdout io.Writer, write func(io.Writer) error) error {
	var err error
	switch {
	case name == "" || name == "-":
		name = "standard output"
		err = write(stdout)
	case isSpecial(name):
		err = writeThrough(name, write)
	default:
		err = writeWhole(name, write)
	}
	var output *feed.OutputError
	if errors.As(err, &output) {
		err = output.Cause
	}
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) {
		return fmt.Errorf("%s: %s", name, fileProblem(err))
	}
	return err
}

// isSpecial tells what must not be replaced by a file.
func isSpecial(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func writeThrough(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// writeWhole writes beside the file and puts it in its place when it is
// complete; behind a link, the file that the link names.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".palmares-")
	if err != nil {
		return err
	}
	defer func() {
		_ = file.Close()
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	if err := compressedIf(strings.HasSuffix(name, ".gz"), file, write); err != nil {
		return err
	}
	// A feed that is published is not a secret; temporary files are.
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

func compressedIf(compress bool, file io.Writer, write func(io.Writer) error) error {
	if !compress {
		return write(file)
	}
	w := gzip.NewWriter(file)
	if err := write(w); err != nil {
		return err
	}
	return w.Close()
}
