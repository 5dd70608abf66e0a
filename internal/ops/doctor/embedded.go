package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"palmares/internal/core/store"
)

const (
	roomWrong   = 64 << 20
	roomWarning = 1 << 30
)

// folder looks at where the embedded database lives, and tells whether there
// is one.
func folder(dir string, r *report) bool {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.warn("data folder", fmt.Sprintf("There is no folder %s yet.", dir), "palmares serve makes it, or correct PALMARES_DATA_DIR.", nil)
		return false
	}
	if err := tryWriting(dir); err != nil {
		unwritable(r, dir, err)
		return false
	}
	r.ok("data folder", "%s can be written to.", dir)
	room(dir, r)
	if _, err := os.Stat(store.File(dir)); err != nil {
		r.warn("database", "There is no embedded database yet.", "palmares serve or palmares import makes it, or correct PALMARES_DATA_DIR.", nil)
		return false
	}
	return true
}

// tryWriting is the only way to know: modes say nothing of full disks, of
// those mounted for reading, nor of who may do anything.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 64<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}

func unwritable(r *report, dir string, err error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		r.wrong("data folder", fmt.Sprintf("The disk of %s is full.", dir), "Make room on it.", err)
	case errors.Is(err, syscall.EROFS):
		r.wrong("data folder", fmt.Sprintf("The disk of %s is mounted for reading only.", dir), "Mount it for writing; if it became so by itself, the disk may be failing.", err)
	case errors.Is(err, fs.ErrPermission):
		r.wrong("data folder", fmt.Sprintf("palmares may not write to %s.", dir), "Give the folder to the user that runs palmares.", err)
	case errors.Is(err, syscall.ENOTDIR):
		r.wrong("data folder", fmt.Sprintf("%s is no folder.", dir), "Correct PALMARES_DATA_DIR.", err)
	default:
		r.wrong("data folder", fmt.Sprintf("%s cannot be written to.", dir), "See to the disk, or correct PALMARES_DATA_DIR.", err)
	}
}

// room is what an import, a backup and the log beside the database need: each
// may be about as large as the database.
func room(dir string, r *report) {
	free, known := freeSpace(dir)
	if !known {
		return
	}
	var size int64
	if info, err := os.Stat(store.File(dir)); err == nil {
		size = info.Size()
	}
	switch {
	case free < roomWrong:
		r.wrong("disk", fmt.Sprintf("Only %s are free.", bytes(free)), "Make room: the next import may fail.", nil)
	case free < roomWarning || free < size:
		r.warn("disk", fmt.Sprintf("%s are free, beside a database of %s.", bytes(free), bytes(size)), "Make room: an import or a backup may need as much as the database.", nil)
	default:
		r.ok("disk", "%s are free.", bytes(free))
	}
}
