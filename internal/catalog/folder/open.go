package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"palmares/internal/catalog/feed"
	"palmares/internal/core/disk"
)

// Opened is a feed that is closed after it was read.
type Opened interface {
	feed.Source
	io.Closer
}

type openedFile struct {
	feed.Lines
	io.Closer
}

type openedFolder struct {
	*Folder
	root *os.Root
}

// OpenFeed opens a feed, a file or a folder; - is standard input. A feed is read several
// times, so anything but a regular file or a folder is copied to a temporary file. Errors
// are for people, and name the file.
func OpenFeed(ctx context.Context, name string, stdin *os.File) (Opened, error) {
	file, err := stdin, error(nil)
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, disk.Error(name, err)
		}
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, disk.Error(name, err)
	case info.IsDir():
		_ = file.Close()
		return openFolder(name)
	case info.Mode().IsRegular():
		return openedFile{feed.NewLines(file), file}, nil
	}
	return copyToTemp(ctx, file)
}

func copyToTemp(ctx context.Context, from io.Reader) (Opened, error) {
	file, err := os.CreateTemp("", "palmares-feed-")
	if err != nil {
		return nil, disk.Error("temporary file", err)
	}
	_ = os.Remove(file.Name()) // the data stays available until the file is closed
	// A read from an idle pipe cannot be interrupted, so it runs in its own goroutine.
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(file, from)
		copied <- err
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err = <-copied:
	}
	if err != nil {
		_ = file.Close()
		return nil, disk.Error("temporary file", err)
	}
	return openedFile{feed.NewLines(file), file}, nil
}

func openFolder(name string) (Opened, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, disk.Error(name, err)
	}
	opened, err := Open(root.FS())
	if err != nil {
		_ = root.Close()
		return nil, Error(name, err)
	}
	return openedFolder{opened, root}, nil
}

func (f openedFolder) Read(ctx context.Context, selected feed.Selection, progress func(done, total int64), each func(*feed.Item) (bool, error)) error {
	return Error(f.root.Name(), f.Folder.Read(ctx, selected, progress, each))
}

func (f openedFolder) Close() error { return f.root.Close() }

// Error adds the name of a folder to an error about it, for people.
func Error(name string, err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, ErrNotCatalog), errors.Is(err, ErrNotEmpty):
		return fmt.Errorf("%s: %w", name, err)
	case errors.As(err, &path) && !filepath.IsAbs(path.Path):
		name = filepath.Join(name, path.Path)
	}
	return disk.Error(name, err)
}
