// Package downloads serves releases of the catalog as files: catalog.sqlite and Parquet.
// Each file requires an API key or a download token, and supports ranges, so that
// programs such as DuckDB read only the columns they need.
package downloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/catalog/files"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

// The paths of files.
const (
	Path         = "/files/"
	IndexPath    = Path + "index.json"
	ReleasesPath = Path + "releases/"
	LatestPath   = Path + "latest/"
	PagePath     = "/files" // the page for people
)

const (
	// waitTime is how long a request waits for files that are being written.
	waitTime = 5 * time.Second
	// waitRetry is when to try again after that, in seconds.
	waitRetry = "5"
	// maxRanges is how many ranges of a file one request may have. Each costs about as much
	// as a request.
	maxRanges = 16
	// sendTime is how long a client may take to receive a chunk.
	sendTime = 30 * time.Second
)

// Handler serves the files of all releases that can be read.
type Handler struct {
	Archive   *files.Archive
	Newest    func(context.Context) (*release.Release, error)
	PublicURL string
	Log       *slog.Logger
	WaitTime  time.Duration // waitTime if zero
}

// Listing describes the files of the newest release.
type Listing struct {
	Release  int       `json:"release"`
	Date     string    `json:"date"`
	Format   int       `json:"format"` // changes if the columns do
	Files    []Listed  `json:"files"`
	Releases []Earlier `json:"releases"` // all that can be read, newest first
}

// Listed is a file of the newest release.
type Listed struct {
	files.File
	URL       string `json:"url"`
	LatestURL string `json:"latest_url"`
	Type      string `json:"type"`
}

// Earlier is a release whose files can be downloaded.
type Earlier struct {
	Release int    `json:"release"`
	Date    string `json:"date"`
	URL     string `json:"url"` // the folder with its files
}

// RequiresKey reports whether a path is one of files.
func RequiresKey(path string) bool {
	return strings.HasPrefix(path, ReleasesPath) || strings.HasPrefix(path, LatestPath)
}

// Counted returns what a request counts as: all requests of an account for the same
// file on the same day count once. It returns "" for paths that are no file.
func Counted(r *http.Request) string {
	if _, name, ok := split(r.URL.Path); !ok || !slices.Contains(files.Names(), name) {
		return ""
	}
	return r.URL.Path
}

// split splits the path of a release's file.
func split(path string) (number int, name string, ok bool) {
	text, found := strings.CutPrefix(path, ReleasesPath)
	text, name, separated := strings.Cut(text, "/")
	number, err := strconv.Atoi(text)
	return number, name, found && separated && err == nil && strconv.Itoa(number) == text
}

// List describes the files of the newest release. If they are still being written, it
// returns an error of files.Archive.
func (h *Handler) List(ctx context.Context) (*Listing, error) {
	newest, err := h.Newest(ctx)
	if err != nil {
		return nil, err
	}
	list := &Listing{Release: newest.Number(), Format: files.Format, Files: []Listed{}, Releases: []Earlier{}}
	if newest.Info == nil {
		return list, nil
	}
	list.Date = newest.Info.FeedDate
	for _, info := range newest.Readable() {
		list.Releases = append(list.Releases, Earlier{info.ID, info.FeedDate, h.PublicURL + ReleasesPath + strconv.Itoa(info.ID) + "/"})
	}
	set, err := h.get(ctx, newest, newest.Info, files.Requester{})
	if err != nil {
		return nil, err
	}
	for _, f := range set.Files {
		list.Files = append(list.Files, Listed{f, list.Releases[0].URL + f.Name, h.PublicURL + LatestPath + f.Name, contentType(f.Name)})
	}
	return list, nil
}

// get waits for the files of a release.
func (h *Handler) get(ctx context.Context, newest *release.Release, info *ent.Release, by files.Requester) (*files.Set, error) {
	wait := h.WaitTime
	if wait == 0 {
		wait = waitTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return h.Archive.Get(ctx, info, newest.HistoryFrom(), by)
}

// ServeHTTP serves the list and the files.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, problem.New(problem.WrongMethod, "Use GET or HEAD for this path."))
		return
	}
	err := h.serve(w, r)
	if err == nil {
		return
	}
	if problem.Of(err).Code.Status() >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.Log.ErrorContext(r.Context(), "serving files failed", "cause", errors.Join(problem.Of(err).Cause, err), "request_id", problem.RequestID(r.Context()))
	}
	problem.Write(w, err)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	switch {
	case r.URL.Path == Path && negotiate.Named(r.Header["Accept"], "text/html") > 0:
		w.Header().Set("Vary", "Accept, Accept-Language")
		http.Redirect(w, r, lang.Preferred(r.Header.Get("Accept-Language")).Path(PagePath), http.StatusFound)
		return nil
	case r.URL.Path == Path || r.URL.Path == IndexPath:
		return h.serveList(w, r)
	case !RequiresKey(r.URL.Path):
		return errNotFound
	case auth.CallerFrom(r.Context()).Key == "":
		return problem.New(problem.Unauthenticated, "This endpoint requires an API key. Create one at %s/account.", h.PublicURL)
	}
	newest, err := h.Newest(r.Context())
	if err != nil {
		return unavailable(err)
	}
	if name, latest := strings.CutPrefix(r.URL.Path, LatestPath); latest {
		if newest.Info == nil || !slices.Contains(files.Names(), name) {
			return errNotFound
		}
		target := *r.URL // with the token
		target.Path = fmt.Sprint(ReleasesPath, newest.Number(), "/", name)
		w.Header().Set("Cache-Control", "private, no-cache")
		http.Redirect(w, r, target.RequestURI(), http.StatusFound)
		return nil
	}
	number, name, ok := split(r.URL.Path)
	if !ok || !slices.Contains(files.Names(), name) {
		return errNotFound
	}
	info := newest.Numbered(number)
	switch {
	case info == nil:
		return problem.New(problem.NotFound, "There is no release %d. The newest one is %d.", number, newest.Number())
	case number < newest.HistoryFrom():
		return gone(number, newest.HistoryFrom())
	}
	if cache.CachedOnly(r.Context()) && h.Archive.Find(info, newest.HistoryFrom()) == nil {
		return errNotFound // only a 304 would be sent
	}
	if ranges := 1 + strings.Count(r.Header.Get("Range"), ","); ranges > maxRanges {
		return problem.New(problem.BadInput, "Range may have at most %d ranges (got %d). Send several requests.", maxRanges, ranges)
	}
	by := files.Requester{Account: auth.CallerFrom(r.Context()).Account, Count: func() error { return quota.CountAgain(w) }}
	if number == newest.Number() {
		by = files.Requester{} // it is written for everyone
	}
	set, err := h.get(r.Context(), newest, info, by)
	switch {
	case errors.Is(err, files.ErrTooMany) || err != nil && problem.Of(err).Code == problem.QuotaSpent:
		return err
	case errors.Is(err, store.ErrNoRelease): // pruned since
		return gone(number, number+1)
	case isWaiting(err):
		return h.serveWait(w, number)
	case err != nil:
		return unavailable(err)
	}
	return h.serveFile(w, r, set, info, name)
}

// serveFile sends a file or ranges of it.
func (h *Handler) serveFile(w http.ResponseWriter, r *http.Request, set *files.Set, info *ent.Release, name string) error {
	content, file, err := set.Open(name)
	if err != nil {
		return unavailable(err)
	}
	defer content.Close()
	header, tag := w.Header(), fmt.Sprintf(`"%d-%s"`, files.Format, file.SHA256[:32])
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	header.Set("Vary", "Authorization")
	header.Set("Content-Type", contentType(name))
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Service-Release", strconv.Itoa(info.ID))
	header.Set("X-Service-Updated-At", info.FeedDate)
	if cache.CachedOnly(r.Context()) { // without reading a file that is not sent
		r = r.Clone(r.Context())
		r.Method = http.MethodHead
	}
	http.ServeContent(&fileWriter{ResponseWriter: w, conn: http.NewResponseController(w)}, r, name, time.Time{}, content)
	return nil
}

func (h *Handler) serveList(w http.ResponseWriter, r *http.Request) error {
	list, err := h.List(r.Context())
	if isWaiting(err) {
		return h.serveWait(w, 0)
	}
	if err != nil {
		return unavailable(err)
	}
	w.Header().Set("Vary", "Accept")
	return writeJSON(w, http.StatusOK, "public, max-age=60", list)
}

// serveWait reports that files are being written.
func (h *Handler) serveWait(w http.ResponseWriter, number int) error {
	w.Header().Set("Retry-After", waitRetry)
	of := "the newest release"
	if number > 0 {
		of = fmt.Sprint("release ", number)
	}
	return writeJSON(w, http.StatusAccepted, "no-store", map[string]string{
		"message": fmt.Sprintf("The files of %s are being written. Try again in %s seconds.", of, waitRetry),
	})
}

func isWaiting(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, files.ErrBusy)
}

var errNotFound = problem.New(problem.NotFound, "There is no such file. %s lists all files.", IndexPath)

func gone(number, oldest int) error {
	return problem.New(problem.Gone, "The files of release %d are no longer available. The oldest release with files is %d.", number, oldest)
}

func unavailable(cause error) error {
	p := problem.New(problem.Unavailable, "The files cannot be provided at the moment. Try again in a minute.")
	p.Cause = cause
	return p
}

func contentType(name string) string {
	if path.Ext(name) == files.Parquet {
		return "application/vnd.apache.parquet"
	}
	return "application/vnd.sqlite3"
}

// fileWriter replaces the server's write timeout for a whole response by one for each
// chunk, and the errors of http.ServeContent by ours.
type fileWriter struct {
	http.ResponseWriter
	conn   *http.ResponseController
	failed bool
}

// WriteHeader implements http.ResponseWriter.
func (w *fileWriter) WriteHeader(status int) {
	if status < http.StatusBadRequest {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.failed = true
	message := "The file has another ETag than If-Match requires."
	if status == http.StatusRequestedRangeNotSatisfiable {
		message = "Range is malformed or outside the file. A HEAD request returns the file's size."
	}
	w.Header().Del("Content-Disposition")
	_ = writeJSON(w.ResponseWriter, status, "no-store", map[string]string{"error": message})
}

// Write implements io.Writer.
func (w *fileWriter) Write(data []byte) (int, error) {
	if w.failed {
		return len(data), nil
	}
	if err := w.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return w.ResponseWriter.Write(data)
}

func writeJSON(w http.ResponseWriter, status int, cacheControl string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", cacheControl)
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return nil
}
