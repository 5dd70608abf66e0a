// Package disk replaces files, and words the errors of the file system for people.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Error rewords an error of the file system, and returns other errors unchanged.
func Error(name string, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if !errors.As(err, &path) && !errors.As(err, &link) {
		return err
	}
	reason := "cannot be read or written"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.Is(err, syscall.ENOTDIR):
		reason = "is not a directory"
	case errors.Is(err, syscall.ENOSPC):
		reason = "the disk is full"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		reason = "is a directory"
	case errors.Is(err, syscall.EPIPE):
		reason = "the reader has closed the pipe"
	}
	return fmt.Errorf("%s: %s", Printable(name), reason)
}

// Printable returns the name of a file for a line of output. Names may contain line breaks,
// after which a workflow would read commands.
func Printable(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// IsSpecial reports whether a file, such as a device or a pipe, must not be replaced by a
// regular one.
func IsSpecial(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Replace writes a temporary file, readable only by its owner unless write changes that,
// and renames it once it is on disk.
func Replace(name string, write func(*os.File) error) (err error) {
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
	if err := write(file); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
