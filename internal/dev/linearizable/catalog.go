package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

// recorder records what clients see of the catalog.
type recorder struct {
	*cluster
	key string
	mu  gosync.Mutex
	h   catalogHistory
}

// recordCatalog reads, syncs and receives events during imports and prunes, and
// restores a backup in the middle.
func recordCatalog(t testing.TB, c *cluster, length time.Duration) *catalogHistory {
	r := &recorder{cluster: c, key: blackbox.CreateKey(t, c.cfg, load.Owner, "pro")}
	inbox := httptest.NewServer(r)
	defer inbox.Close()
	blackbox.MustRun(t, blackbox.Command(t, c.cfg, "webhooks", "add", load.Owner, inbox.URL))
	first := r.lastEvent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	readers := inParallel(ctx, len(c.servers)*2, r.read)
	synced := make([]string, 4)
	syncers := inParallel(ctx, len(synced), func(number int) {
		if synced[number] = r.sync(number, synced[number]); number == 0 {
			synced[number] = "" // it always reads the whole set, which the others must end up with
		}
	})

	end := time.Now().Add(length)
	backup, newest := filepath.Join(t.TempDir(), "backup"), 0
	for n := 1; time.Now().Before(end); n++ {
		check.OK(t, c.publish())
		switch {
		case backup != "" && time.Until(end) < length*2/3 && newest == 0:
			newest = r.newest()
			c.runPostgres("pg_dump", "--format=custom", "--file="+backup, c.postgres.URL)
		case backup != "" && time.Until(end) < length/2:
			r.waitForDeliveries(first)
			first = "" // the journal of the backup continues from another event
			restored := restore{Start: c.now(), Newest: newest}
			c.runPostgres("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error", "--single-transaction", "--dbname="+c.postgres.URL, backup)
			restored.End = c.now()
			r.mu.Lock()
			r.h.Restores = append(r.h.Restores, restored)
			r.mu.Unlock()
			backup, first = "", r.lastEvent()
		case n%5 == 0:
			r.mu.Lock()
			r.h.Prunes = append(r.h.Prunes, c.now())
			r.mu.Unlock()
			check.OK(t, c.run(nil, "history", "prune", "--yes", "--before", strconv.Itoa(r.newest()-3)))
		}
		time.Sleep(time.Second)
	}
	r.waitForDeliveries(first)
	cancel()
	readers()
	syncers()
	return &r.h
}

// newest returns the number of the newest release.
func (r *recorder) newest() int {
	out := blackbox.MustRun(r.t, blackbox.Command(r.t, r.cfg, "releases")).Out
	n, err := strconv.Atoi(regexp.MustCompile(`(?m)^\d+`).FindString(out))
	check.OK(r.t, err)
	return n
}

// paths are read again and again. A number in braces is that of an earlier release.
var paths = []string{
	"/api/v1/stats", "/api/v1/tools?limit=20", "/api/v1/tools/outil-1", "/api/v1/categories", "/api/v1/pricing",
	"/api/v1/tools?limit=20&as_of={}", "/api/v1/stats?as_of={}",
}

func (r *recorder) read(number int) {
	done := read{Client: number, Server: number % len(r.servers)}
	path := paths[rand.IntN(len(paths))]
	if before, after, ok := strings.Cut(path, "{}"); ok {
		done.AsOf = max(1, r.recent()-rand.IntN(4))
		path = before + strconv.Itoa(done.AsOf) + after
	}
	done.URL, done.Start = path, r.now()
	response, body := r.get(done.Server, path, "Authorization", "Bearer "+r.key)
	if done.End = r.now(); response == nil {
		return
	}
	done.Status, done.ETag, done.Body = response.StatusCode, response.Header.Get("ETag"), hash(body)
	done.Release, _ = strconv.Atoi(response.Header.Get("X-Service-Release"))
	r.mu.Lock()
	r.h.Reads = append(r.h.Reads, done)
	r.mu.Unlock()
	time.Sleep(pause)
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
	done := sync{Client: number, Start: r.now(), Whole: token == "", Documents: map[string]string{}}
	path := "/api/embeddings?limit=10"
	if token != "" {
		path += "&sync=" + token
	}
	for path != "" {
		response, body := r.get(rand.IntN(len(r.servers)), path, "Authorization", "Bearer "+r.key)
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

// ServeHTTP receives an event.
func (r *recorder) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Deliveries = append(r.h.Deliveries, delivery{event{request.Header.Get("webhook-id"), subjectOf(body)}, hash(body)})
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

// journal returns the events after one, oldest first.
func (r *recorder) journal(after string) (all []event) {
	for {
		response, body := r.get(0, "/api/v1/changes?limit=200"+after, "Authorization", "Bearer "+r.key)
		if response == nil || response.StatusCode != http.StatusOK {
			time.Sleep(100 * time.Millisecond) // the server is busy with a restore
			continue
		}
		var page struct {
			Data []json.RawMessage
			Next string
		}
		check.OK(r.t, json.Unmarshal(body, &page))
		if len(page.Data) == 0 {
			return all
		}
		for _, data := range page.Data {
			var e struct{ ID string }
			_ = json.Unmarshal(data, &e)
			all = append(all, event{e.ID, subjectOf(data)})
		}
		after = "&after=" + page.Next
	}
}

// lastEvent returns a parameter that selects the events after the current ones.
func (r *recorder) lastEvent() string {
	all := r.journal("")
	return "&after=" + all[len(all)-1].ID
}

// waitForDeliveries adds the events after one to the history, and waits until they
// are delivered, or some of them never will be.
func (r *recorder) waitForDeliveries(after string) {
	events := r.journal(after)
	for range 600 {
		r.mu.Lock()
		known := map[string]bool{}
		for _, d := range r.h.Deliveries {
			known[d.ID] = true
		}
		r.mu.Unlock()
		missing := 0
		for _, e := range events {
			if !known[e.ID] {
				missing++
			}
		}
		if missing == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Journal = append(r.h.Journal, events...)
}
