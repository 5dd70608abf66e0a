package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// inParallel runs a function several times until it is stopped.
func inParallel(n int, each func(number int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			for ctx.Err() == nil {
				each(i)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

const (
	defaultRate        = 150 // requests per second, however slow responses are
	clientTimeout      = 12 * time.Second
	requestsPerAddress = 50 // of 100 per day
)

// query is a kind of request. Cached ones must always succeed; others may fail
// with 503 while the database is unavailable.
type query struct {
	cached bool
	key    keyKind
	path   string
	body   string // of a POST
}

type keyKind int

const (
	anonymous keyKind = iota
	counted           // the requests of this key are compared with its usage
	reader
)

const (
	tools   = "/api/v1/tools?limit=30"
	graphql = `{feed{release updatedAt} stats{toolsTotal toolsAvgScore} categories{label} ` +
		`tools(limit:20){items{slug tagline updatedAt} meta{total}} comparisons(limit:10){items{title updatedAt}}}`
)

// queries are sent in turn. Their number is prime: nginx sends requests to three servers in
// turn, and each kind must reach all of them. {number} is the number of the request, which makes it unique but
// does not change the result, and {earlier} that of a recent release.
var queries = []query{
	{true, anonymous, tools, ""},
	{true, counted, "/api/v1/pricing?limit=30", ""},
	{true, anonymous, "/graphql", `{"query":"` + graphql + `"}`},
	{false, anonymous, tools + "&score_min=0.{number}", ""},
	{true, anonymous, "/api/v1/stats", ""},
	{false, reader, tools + "&as_of={earlier}", ""},
	{true, anonymous, "/api/v1/categories", ""},
	{true, counted, "/api/v1/pricing?limit=30", ""},
	{true, anonymous, "/api/v1/comparatifs", ""},
	{true, anonymous, "/graphql", `{"query":"` + graphql + `"}`},
	{false, anonymous, "/graphql", `{"query":"query Q{number} ` + graphql + `"}`},
}

var requestNumber atomic.Int64

// startLoad sends requests at a steady rate. End stops it, and returns the
// results after the last response.
func (s *system) startLoad() (end func() []read) {
	ctx, cancel := context.WithCancel(s.Context())
	client := &http.Client{
		Timeout:   clientTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: time.Minute},
	}
	var sent []read
	var running sync.WaitGroup
	running.Go(func() {
		start := time.Now()
		for i := 0; ; i++ {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(s.rate))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
			n := requestNumber.Add(1)
			running.Go(func() {
				r := s.send(client, n, time.Since(due))
				s.record(func(h *catalogHistory) {
					sent = append(sent, r)
					h.Reads = append(h.Reads, r)
				})
			})
		}
	})
	return func() []read {
		cancel()
		running.Wait()
		client.CloseIdleConnections()
		return sent
	}
}

func (s *system) send(client *http.Client, n int64, late time.Duration) read {
	q := &queries[n%int64(len(queries))]
	r := read{query: q, URL: q.path, Server: -1, Start: s.now(), late: late, tries: 1}
	header := [...][]string{
		anonymous: {"X-Forwarded-For", clientAddress(n / requestsPerAddress)}, counted: {"Authorization", "Bearer " + s.key}, reader: s.authorization(),
	}[q.key]
	if strings.Contains(q.path, "{earlier}") {
		r.AsOf = max(1, int(s.newestSeen.Load())-rand.IntN(4))
		r.URL = strings.ReplaceAll(q.path, "{earlier}", strconv.Itoa(r.AsOf))
	}
	different := strings.NewReplacer("{number}", fmt.Sprintf("%07d", n))
	response, body, err := load.Do(context.Background(), client, s.base+different.Replace(r.URL), different.Replace(q.body), header...)
	if r.End = s.now(); err != nil {
		r.failure = err.Error()
		return r
	}
	r.Status, r.ETag, r.Body = response.StatusCode, response.Header.Get("ETag"), hash(body)
	r.Release, _ = strconv.Atoi(response.Header.Get("X-Service-Release"))
	tried := strings.Split(response.Header.Get("X-Served-By"), ", ")
	r.tries = len(tried)
	r.Server = max(0, slices.IndexFunc(s.servers, func(server *server) bool { return server.address == tried[len(tried)-1] }))
	if bytes.Contains(body, []byte(`"UNAVAILABLE"`)) || bytes.Contains(body, []byte(`"TIMEOUT"`)) { // as GraphQL reports it
		r.Status = http.StatusServiceUnavailable
	}
	switch {
	case r.AsOf != 0 && r.Status == http.StatusNotFound: // it was pruned, or the server has not loaded it yet
	case r.Status != http.StatusOK:
		r.failure = fmt.Sprintf("%d %.80s", r.Status, body)
	case r.AsOf == 0:
		s.newestSeen.Store(int64(r.Release))
	}
	return r
}

// authorization is the header with the key of clients whose requests are not compared.
func (s *system) authorization() []string { return []string{"Authorization", "Bearer " + s.reader} }

func clientAddress(n int64) string { return fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255) }

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

const (
	dailyQuota, developerQuota = 100, 1000
	callsPerAddress            = 150 // more than the quota
	openAddresses              = 4   // used at the same time
	clientsPerServer           = 2
	pause                      = 25 * time.Millisecond // how long a client waits after each request
	patience                   = time.Minute           // how long the checker may take for one subject
)

// useUpQuotas sends requests from many addresses and with a key, to one server or
// another, until it is stopped. It adds the histories to an outcome.
func (s *system) useUpQuotas(o *outcome) (stop func()) {
	developer := []string{"Authorization", "Bearer " + blackbox.NewKey(s, s.cfg, "developer")}
	tag := ""
	for server := range s.servers { // a server that does not know the key needs the database
		first, etag, _ := s.call(server, "key", developer...)
		check.Must(s, first.Status, http.StatusOK, "a request with a new key")
		tag = etag
	}
	addresses := &calls{Model: "exact", Limit: dailyQuota}
	keyed := &calls{Model: "exact", Limit: developerQuota - len(s.servers)} // after those requests
	o.quotas = []*calls{addresses, keyed}
	block := time.Now().UnixNano() / 1e6 % (1 << 20) * 4
	var mu sync.Mutex
	var sent, sentKeyed atomic.Int64
	return inParallel(len(s.servers)*clientsPerServer, func(number int) {
		defer time.Sleep(pause)
		to, headers, matches, subject := addresses, []string(nil), false, ""
		if rand.IntN(4) == 0 && sentKeyed.Add(1) < developerQuota*8/10 {
			to, headers, subject, matches = keyed, developer, "key", rand.IntN(2) == 0
			if matches {
				headers = append(slices.Clone(headers), "If-None-Match", tag)
			}
		} else {
			window := sent.Add(1) / (callsPerAddress * openAddresses)
			subject = clientAddress(block + window*openAddresses + rand.Int64N(openAddresses))
			headers = []string{"X-Forwarded-For", subject}
		}
		done, _, arrived := s.call(number%len(s.servers), subject, headers...)
		if !arrived { // the server is not running
			return
		}
		done.Client, done.Matches = number, matches
		if done.Status == http.StatusServiceUnavailable { // counted, as other responses
			done.Status = http.StatusOK
		}
		mu.Lock()
		defer mu.Unlock()
		to.Calls = append(to.Calls, done)
	})
}

// call sends a request and returns what happened, the ETag of the response, and
// whether the server can have received the request.
func (s *system) call(server int, subject string, headers ...string) (done call, tag string, arrived bool) {
	done = call{Subject: subject, Server: server, Start: s.now(), Remaining: unstated}
	response, _, arrived := s.get(server, "/api/v1/stats", headers...)
	done.End = s.now()
	if response == nil {
		return done, "", arrived
	}
	if n, err := strconv.Atoi(response.Header.Get("X-RateLimit-Remaining")); err == nil {
		done.Remaining = n
	}
	done.Status = response.StatusCode
	return done, response.Header.Get("ETag"), true
}

// startSyncs starts clients that sync from any server, until they are stopped.
func (s *system) startSyncs() (stop func()) {
	synced := make([]string, 3)
	return inParallel(len(synced), func(number int) {
		defer time.Sleep(pause * 10)
		if synced[number] = s.sync(number, synced[number]); number == 0 {
			synced[number] = "" // it always reads the whole set, which the others must end up with
		}
	})
}

var nextLink = regexp.MustCompile(`<([^>]*)>; rel="next"`)

// sync reads what has changed since a token, or all, page by page and from any
// server. It returns the next token, or "" to start again.
func (s *system) sync(number int, token string) (next string) {
	done := syncRead{Client: number, Start: s.now(), Whole: token == "", Documents: map[string]string{}}
	path := "/api/embeddings?limit=50"
	if token != "" {
		path += "&sync=" + token
	}
	for path != "" {
		response, body, _ := s.get(rand.IntN(len(s.servers)), path, s.authorization()...)
		if response == nil {
			return token
		}
		done.End, done.Status = s.now(), response.StatusCode
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
	s.record(func(h *catalogHistory) { h.Syncs = append(h.Syncs, done) })
	if done.Status != http.StatusOK {
		return ""
	}
	return next
}

// ServeHTTP receives an event, and spends a moment on it.
func (s *system) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender was killed
	}
	s.record(func(h *catalogHistory) {
		h.Deliveries = append(h.Deliveries, delivery{event{request.Header.Get("webhook-id"), subjectOf(body)}, hash(body)})
		s.sender = request.RemoteAddr
	})
	time.Sleep(10 * time.Millisecond)
}

// received returns the number of deliveries, and the sender of the last one.
func (s *system) received() (n int, sender string) {
	s.record(func(h *catalogHistory) { n, sender = len(h.Deliveries), s.sender })
	return n, sender
}

// waitForDeliveries waits until events are delivered, or some of them never will be, and
// returns how many arrived more than once.
func (s *system) waitForDeliveries(events []event) (repeated int) {
	waitFor(time.Minute, func() bool {
		times := map[string]int{}
		s.record(func(h *catalogHistory) {
			for _, d := range h.Deliveries {
				times[d.ID]++
			}
		})
		missing := 0
		repeated = 0
		for _, e := range events {
			switch times[e.ID] {
			case 0:
				missing++
			case 1:
			default:
				repeated++
			}
		}
		return missing == 0
	})
	return repeated
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
func (s *system) newEvents() (all []event) {
	first := s.after == ""
	for {
		var page struct {
			Data []json.RawMessage
			Next string
		}
		wait.Until(s, "a server returns the journal", func() bool { // it may be busy with a restore
			response, body, _ := s.get(0, "/api/v1/changes?limit=200"+s.after, s.authorization()...)
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
		s.after = "&after=" + page.Next
	}
	if first {
		return nil
	}
	s.record(func(h *catalogHistory) { h.Journal = append(h.Journal, all...) })
	return all
}
