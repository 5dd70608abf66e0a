package files

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Archive keeps the files of releases in a folder, up to a total size. It writes those
// of a release when they are first needed. Servers may share the folder.
type Archive struct {
	store    *store.Store
	folder   string
	maxBytes int64
	log      *slog.Logger
	ctx      context.Context
	stop     context.CancelFunc

	Built, Failed atomic.Int64 // sets of files since the start

	builds singleflight.Group  // by key
	turn   *semaphore.Weighted // one build at a time

	mu      sync.Mutex
	newest  string              // key of the release that is listed
	ready   map[string]*Set     // by key; their content was verified
	running map[string]int      // accounts that started the builds that run or wait, by key
	failed  map[string]failure  // by key
	starts  map[int][]time.Time // of builds within an hour, by account
}

// NewArchive returns an archive in a folder, which is created when it is needed.
func NewArchive(s *store.Store, folder string, maxBytes int64, log *slog.Logger) *Archive {
	a := &Archive{
		store: s, folder: folder, maxBytes: maxBytes, log: log, turn: semaphore.NewWeighted(1),
		ready: map[string]*Set{}, running: map[string]int{}, failed: map[string]failure{}, starts: map[int][]time.Time{},
	}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// Close ends all builds.
func (a *Archive) Close() {
	a.stop()
	_ = a.turn.Acquire(context.Background(), 1) // the running one has removed its files
}

// Set has the files of one release.
type Set struct {
	Release int    `json:"release"`
	Date    string `json:"date"`
	Files   []File `json:"files"`
	folder  string
}

// failure is why a build failed, and when.
type failure struct {
	err error
	at  time.Time
}

const (
	indexFile = "index.json"
	// unfinished is the prefix of folders that are being written.
	unfinished = "unfinished-"
	// buildTimeout is far above what the largest catalog takes. Folders that are
	// unfinished for longer were left by a process that was killed.
	buildTimeout = 10 * time.Minute
	// retryAfter is how long a failed build is not repeated.
	retryAfter = 30 * time.Second
	// maxBuilds limits how many builds of accounts wait for their turn. Each account has at
	// most one of them, so that it cannot keep others waiting.
	maxBuilds = 8
	// maxBuildsPerHour limits the builds of an account: old releases make room for others,
	// and callers may request every one of them again and again.
	maxBuildsPerHour = 12
)

// Requester is who requests files. The zero one is the server itself, which is not limited.
type Requester struct {
	Account int
	Count   func() error // counts a request that starts a build; its error prevents the build
}

// ErrTooLarge is returned if the files of a release, with those of the newest one, exceed
// the limit of the folder.
var ErrTooLarge = errors.New("the files of a release exceed the limit of the folder")

// ErrBusy is returned if too many builds are waiting, or one of the same account.
var ErrBusy = errors.New("too many releases are waiting to be written")

// ErrTooMany is returned if an account has started too many builds.
var ErrTooMany = problem.New(problem.TooMany,
	"Your account has requested the files of %d earlier releases within an hour, which had to be written. Try again in an hour. The files of the newest release are always available.", maxBuildsPerHour)

// keyOf identifies the content of a release's files. Numbers alone do not, because a
// restored backup reuses them, and pruning removes old versions from the history.
func keyOf(release *ent.Release, historyFrom int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s", Format, historyFrom, release.ID, release.ImportedAt.UTC().Format(time.RFC3339Nano)))
	return fmt.Sprintf("%d-%d-%s", release.ID, historyFrom, hex.EncodeToString(sum[:8]))
}

// parseKey returns the oldest release in the history of files with a key, or false if a
// folder is not named after one. An operator may keep others there.
func parseKey(name string) (historyFrom int, ok bool) {
	var release int
	var hash string
	n, _ := fmt.Sscanf(name, "%d-%d-%s", &release, &historyFrom, &hash)
	return historyFrom, n == 3 && len(hash) == 16
}

// Find returns the files of a release, or nil if they have not been written.
func (a *Archive) Find(release *ent.Release, historyFrom int) *Set {
	key := keyOf(release, historyFrom)
	a.mu.Lock()
	defer a.mu.Unlock()
	set := a.ready[key]
	if set != nil {
		if _, err := os.Stat(filepath.Join(set.folder, indexFile)); err != nil { // removed to make room
			delete(a.ready, key)
			return nil
		}
	}
	return set
}

// Prepare writes the files of the newest release, which stay when others have to make
// room. It removes files with a history that has been pruned.
func (a *Archive) Prepare(ctx context.Context, newest *ent.Release) {
	a.mu.Lock()
	a.newest = keyOf(newest, newest.HistoryFrom)
	a.mu.Unlock()
	if root, err := a.root(); err == nil { // Get reports errors
		entries, _ := fs.ReadDir(root.FS(), ".")
		for _, entry := range entries {
			if historyFrom, ok := parseKey(entry.Name()); ok && historyFrom < newest.HistoryFrom {
				_ = root.RemoveAll(entry.Name())
			}
		}
		_ = root.Close()
	}
	_, _ = a.Get(ctx, newest, newest.HistoryFrom, Requester{}) // it logs errors
}

// Get returns the files of a release. It starts to write them if they are missing, which
// continues if ctx ends first.
func (a *Archive) Get(ctx context.Context, release *ent.Release, historyFrom int, by Requester) (*Set, error) {
	if set := a.Find(release, historyFrom); set != nil {
		return set, nil
	}
	key := keyOf(release, historyFrom)
	starts, err := a.admit(key, by.Account, by.Count == nil)
	if starts && by.Count != nil {
		if err = by.Count(); err == nil {
			_, err = a.admit(key, by.Account, true)
		}
	}
	if err != nil {
		return nil, err
	}
	built := a.builds.DoChan(key, func() (any, error) { return a.build(key, release) })
	select {
	case b := <-built:
		return b.Val.(*Set), b.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// admit reports whether a request starts a build, because none is running, and records
// it if the caller will start it. It returns an error if the last build failed a moment
// ago, or if the account may not start one.
func (a *Archive) admit(key string, account int, record bool) (starts bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failed := a.failed[key]; time.Since(failed.at) < retryAfter {
		return false, failed.err
	}
	if _, ok := a.running[key]; ok {
		return false, nil
	}
	if account != 0 {
		for account, starts := range a.starts {
			if a.starts[account] = slices.DeleteFunc(starts, func(at time.Time) bool { return time.Since(at) >= time.Hour }); len(a.starts[account]) == 0 {
				delete(a.starts, account)
			}
		}
		switch {
		case len(a.running) >= maxBuilds || slices.Contains(slices.Collect(maps.Values(a.running)), account):
			return false, ErrBusy
		case len(a.starts[account]) >= maxBuildsPerHour:
			return false, ErrTooMany
		}
	}
	if record {
		a.running[key] = account
		if account != 0 {
			a.starts[account] = append(a.starts[account], time.Now())
		}
	}
	return true, nil
}

// build reads the files of a release from disk, or writes them.
func (a *Archive) build(key string, release *ent.Release) (set *Set, err error) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.running, key)
		delete(a.failed, key)
		if err == nil {
			a.ready[key] = set
		} else {
			a.failed[key] = failure{err, time.Now()}
		}
	}()
	if err := a.turn.Acquire(a.ctx, 1); err != nil {
		return nil, err
	}
	defer a.turn.Release(1)
	if set, err := open(filepath.Join(a.folder, key)); err == nil {
		return set, nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, buildTimeout)
	defer cancel()
	started := time.Now()
	if set, err = a.write(ctx, key, release); err == nil {
		a.Built.Add(1)
		a.log.Info("release files written", "release", release.ID, "bytes", set.size(), "duration", time.Since(started).Round(time.Millisecond))
	} else if a.ctx.Err() == nil {
		a.Failed.Add(1)
		a.log.Warn("writing release files failed", "release", release.ID, "cause", err)
	}
	return set, err
}

// root opens the folder, so that no name leads out of it.
func (a *Archive) root() (*os.Root, error) {
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(a.folder)
}

// write writes the files of a release to a folder that gets its name once all of them
// are on disk.
func (a *Archive) write(ctx context.Context, key string, release *ent.Release) (set *Set, err error) {
	root, err := a.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name := unfinished + rand.Text()
	if err := root.Mkdir(name, 0o700); err != nil {
		return nil, err
	}
	defer func() { _ = root.RemoveAll(name) }() // has no effect after the rename
	set = &Set{Release: release.ID, Date: release.FeedDate, folder: filepath.Join(a.folder, key)}
	set.Files, err = Write(ctx, a.store, release.ID, filepath.Join(a.folder, name), Kinds{SQLite: true, Parquet: true}, func(size int64) error {
		return a.makeRoom(root, size, name, key)
	})
	if err != nil {
		return nil, err
	}
	index, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	if err := writeSynced(root, filepath.Join(name, indexFile), index); err != nil {
		return nil, err
	}
	if err := syncFolder(root, name); err != nil {
		return nil, err
	}
	if root.Rename(name, key) != nil {
		if written, err := open(set.folder); err == nil {
			return written, nil // by another server
		}
		if err := cmp.Or(root.RemoveAll(key), root.Rename(name, key)); err != nil { // a damaged one
			return nil, err
		}
	}
	return set, syncFolder(root, ".")
}

// makeRoom removes the oldest files until there is room for a number of bytes in a folder
// that will replace another one. Those of the newest release stay.
func (a *Archive) makeRoom(root *os.Root, size int64, folder, replaces string) error {
	type stored struct {
		name  string
		size  int64
		since time.Time
	}
	var all []stored
	var others int64
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	a.mu.Lock()
	newest := a.newest
	a.mu.Unlock()
	for _, entry := range entries {
		name, temporary := entry.Name(), strings.HasPrefix(entry.Name(), unfinished)
		info, err := entry.Info()
		if _, ours := parseKey(name); err != nil || name == folder || !entry.IsDir() || !ours && !temporary {
			continue
		}
		if temporary && time.Since(info.ModTime()) > buildTimeout {
			_ = root.RemoveAll(name)
			continue
		}
		bytes, _ := folderSize(filepath.Join(a.folder, name))
		if name == newest && name != replaces {
			size += bytes
			continue
		}
		all = append(all, stored{name, bytes, info.ModTime()})
		others += bytes
	}
	if size > a.maxBytes {
		return ErrTooLarge
	}
	slices.SortFunc(all, func(x, y stored) int { return cmp.Or(x.since.Compare(y.since), strings.Compare(x.name, y.name)) })
	for _, s := range all {
		if size+others <= a.maxBytes {
			break
		}
		if err := root.RemoveAll(s.name); err != nil {
			return err
		}
		others -= s.size
	}
	return nil
}

// open reads a set from disk and verifies its files, which a crash or a failing disk may
// have damaged. The index cannot name files outside of the folder.
func open(folder string) (*Set, error) {
	index, err := os.ReadFile(filepath.Join(folder, indexFile))
	if err != nil {
		return nil, err
	}
	set := &Set{folder: folder}
	if err := json.Unmarshal(index, set); err != nil {
		return nil, err
	}
	for _, f := range set.Files {
		file, err := os.OpenInRoot(folder, f.Name)
		if err != nil {
			return nil, err
		}
		size, sum, err := digest(file)
		_ = file.Close()
		if err != nil || size != f.Size || sum != f.SHA256 {
			return nil, errors.Join(err, fmt.Errorf("%s is damaged", f.Name))
		}
	}
	return set, nil
}

// Open opens a file of the set, or returns an error if there is none of that name.
func (s *Set) Open(name string) (*os.File, File, error) {
	i := slices.IndexFunc(s.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil, File{}, fs.ErrNotExist
	}
	file, err := os.OpenInRoot(s.folder, name)
	return file, s.Files[i], err
}

func (s *Set) size() (bytes int64) {
	for _, f := range s.Files {
		bytes += f.Size
	}
	return bytes
}

func writeSynced(root *os.Root, name string, content []byte) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes a rename durable.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
