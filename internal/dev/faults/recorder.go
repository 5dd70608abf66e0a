package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// recorder records what clients see of the catalog. It is also the webhook
// receiver.
type recorder struct {
	*system
	key    string
	after  string // the parameter that selects the events that are new in the journal
	mu     sync.Mutex
	h      catalogHistory
	sender string // address of the last connection
}

// startClients starts clients that read and sync from any server, until they are stopped.
func (r *recorder) startClients() (stop func()) {
	stopReaders := inParallel(len(r.servers), r.read)
	synced := make([]string, 3)
	stopSyncs := inParallel(len(synced), func(number int) {
		if synced[number] = r.sync(number, synced[number]); number == 0 {
			synced[number] = "" // it always reads the whole set, which the others must end up with
		}
	})
	return func() {
		stopReaders()
		stopSyncs()
	}
}

// restoreDuringImports imports and prunes for a time, and restores a backup in the
// middle.
func (r *recorder) restoreDuringImports(length time.Duration) {
	end := time.Now().Add(length)
	backup, newest := filepath.Join(r.t.TempDir(), "backup"), 0
	for n := 1; time.Now().Before(end) || backup != ""; n++ {
		check.OK(r.t, r.publish())
		switch {
		case backup != "" && newest == 0 && time.Until(end) < length*2/3:
			newest = r.newest()
			r.runPostgres("pg_dump", "--format=custom", "--file="+backup, r.postgres.URL)
		case backup != "" && time.Until(end) < length/2:
			r.waitForDeliveries()
			restored := restore{Start: r.now(), Newest: newest}
			r.runPostgres("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error", "--single-transaction", "--dbname="+r.postgres.URL, backup)
			restored.End = r.now()
			r.mu.Lock()
			r.h.Restores = append(r.h.Restores, restored)
			r.mu.Unlock()
			backup, r.after = "", "" // the journal of the backup continues from another event
			r.newEvents()
		case n%5 == 0:
			r.mu.Lock()
			r.h.Prunes = append(r.h.Prunes, r.now())
			r.mu.Unlock()
			check.OK(r.t, r.run(nil, "history", "prune", "--yes", "--before", strconv.Itoa(r.newest()-3)))
		}
		time.Sleep(time.Second)
	}
	r.waitForDeliveries()
}

// waitForDeliveries waits until the new events are delivered, or some of them never
// will be.
func (r *recorder) waitForDeliveries() {
	events := r.newEvents()
	waitFor(time.Minute, func() bool {
		lost, _ := r.arrived(events)
		return lost == 0
	})
}

// newest returns the number of the newest release.
func (r *recorder) newest() int {
	out := blackbox.MustRun(r.t, blackbox.Command(r.t, r.cfg, "releases")).Out
	n := check.Try(strconv.Atoi(regexp.MustCompile(`(?m)^\d+`).FindString(out))).OK(r.t)
	return n
}

// paths are read again and again. A number in braces is that of an earlier release.
var paths = []string{
	"/api/v1/stats", "/api/v1/tools?limit=20", "/api/v1/tools/outil-1", "/api/v1/categories", "/api/v1/pricing",
	"/api/v1/tools?limit=20&as_of={}", "/api/v1/stats?as_of={}",
}

func (r *recorder) read(number int) {
	defer time.Sleep(pause * 2)
	done := read{Client: number, Server: number % len(r.servers)}
	path := paths[rand.IntN(len(paths))]
	if before, after, ok := strings.Cut(path, "{}"); ok {
		done.AsOf = max(1, r.recent()-rand.IntN(4))
		path = before + strconv.Itoa(done.AsOf) + after
	}
	done.URL, done.Start = path, r.now()
	response, body, _ := r.get(done.Server, path, "Authorization", "Bearer "+r.key)
	if done.End = r.now(); response == nil {
		return
	}
	done.Status, done.ETag, done.Body = response.StatusCode, response.Header.Get("ETag"), hash(body)
	done.Release, _ = strconv.Atoi(response.Header.Get("X-Service-Release"))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Reads = append(r.h.Reads, done)
}

// recent returns the newest release that a read has shown lately.
func (r *recorder) recent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.h.Reads) - 1; i >= 0; i-- {
		if read := r.h.Reads[i]; read.AsOf == 0 {
			return read.Release
		}
	}
	return 1
}

var nextLink = regexp.MustCompile(`<([^>]*)>; rel="next"`)

// sync reads what has changed since a token, or all, page by page and from any
// server. It returns the next token, or "" to start again.
func (r *recorder) sync(number int, token string) (next string) {
	defer time.Sleep(pause * 10)
	done := syncRead{Client: number, Start: r.now(), Whole: token == "", Documents: map[string]string{}}
	path := "/api/embeddings?limit=10"
	if token != "" {
		path += "&sync=" + token
	}
	for path != "" {
		response, body, _ := r.get(rand.IntN(len(r.servers)), path, "Authorization", "Bearer "+r.key)
		if response == nil {
			return token
		}
		done.End, done.Status = r.now(), response.StatusCode
		var page struct {
			Data []map[string]any
			Next string `json:"next_sync"`
		}
		if err := json.Unmarshal(body, &page); err != nil || done.Status != http.StatusOK {
			break
		}
		for _, document := range page.Data {
			slug := fmt.Sprint(document["slug"])
			if _, again := done.Documents[slug]; again {
				slug += " (twice)" // no other client has it
			}
			done.Documents[slug] = ""
			if document["deleted"] == nil {
				text, _ := json.Marshal(document)
				done.Documents[slug] = hash(text)
			}
		}
		done.Release, _ = strconv.Atoi(response.Header.Get("X-Service-Release"))
		next, path = page.Next, ""
		if link := nextLink.FindStringSubmatch(response.Header.Get("Link")); link != nil {
			path = link[1][strings.Index(link[1], "/api/"):]
		}
	}
	if done.Status == http.StatusServiceUnavailable {
		return token
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Syncs = append(r.h.Syncs, done)
	if done.Status != http.StatusOK {
		return ""
	}
	return next
}

// ServeHTTP receives an event, and spends a moment on it.
func (r *recorder) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was killed
	}
	defer time.Sleep(10 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Deliveries = append(r.h.Deliveries, delivery{event{request.Header.Get("webhook-id"), subjectOf(body)}, hash(body)})
	r.sender = request.RemoteAddr
}

// received returns the number of deliveries, and the sender of the last one.
func (r *recorder) received() (n int, sender string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.h.Deliveries), r.sender
}

// arrived returns how many of the events have not arrived, and how many have more
// than once.
func (r *recorder) arrived(events []event) (lost, duplicated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	times := map[string]int{}
	for _, d := range r.h.Deliveries {
		times[d.ID]++
	}
	for _, e := range events {
		switch n := times[e.ID]; {
		case n == 0:
			lost++
		case n > 1:
			duplicated++
		}
	}
	return lost, duplicated
}

// subjectOf returns what an event is about. Each subject has one event.
func subjectOf(body []byte) string {
	var e struct {
		Type, Slug, Timestamp string
		Release               int
	}
	_ = json.Unmarshal(body, &e)
	return fmt.Sprintf("%s %s in release %d of %s", e.Type, e.Slug, e.Release, e.Timestamp)
}

// newEvents adds the events of the journal since the last call to the history. The
// first call skips them.
func (r *recorder) newEvents() (all []event) {
	first := r.after == ""
	for {
		var page struct {
			Data []json.RawMessage
			Next string
		}
		wait.Until(r.t, "a server returns the journal", func() bool { // it may be busy with a restore
			response, body, _ := r.get(0, "/api/v1/changes?limit=200"+r.after, "Authorization", "Bearer "+r.key)
			return response != nil && response.StatusCode == http.StatusOK && json.Unmarshal(body, &page) == nil
		})
		if len(page.Data) == 0 {
			break
		}
		for _, data := range page.Data {
			var e struct{ ID string }
			_ = json.Unmarshal(data, &e)
			all = append(all, event{e.ID, subjectOf(data)})
		}
		r.after = "&after=" + page.Next
	}
	if first {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Journal = append(r.h.Journal, all...)
	return all
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
