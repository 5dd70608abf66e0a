package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// rate is what is asked a second, come what may: a slow answer does not
	// slow the next question down.
	rate = 150
	// patience is when a reader gives up.
	patience = 12 * time.Second
	// askedOf is how many requests come from one address, which has 100 a day.
	askedOf = 50
)

// question is a kind of request. What is asked of the cache must be answered
// whatever is broken; what is not may be refused with 503 while the database
// is away.
type question struct {
	name   string
	cached bool
	keyed  bool // with a key, whose requests are counted
	path   string
	body   string // of a POST
}

const everything = `{feed{release updatedAt} stats{toolsTotal toolsAvgScore} categories{label} ` +
	`tools(limit:20){items{slug tagline updatedAt} meta{total}} comparisons(limit:10){items{title updatedAt}}}`

// questions are asked in turn. A %d is the request's number, which makes it
// one that nobody asked before.
var questions = []question{
	{name: "tools", cached: true, path: "/api/v1/tools?limit=50"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=50"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + everything + `"}`},
	{name: "tools, uncached", path: "/api/v1/tools?score_min=0.%07d"},
	{name: "statistics", cached: true, path: "/api/v1/stats"},
	{name: "categories", cached: true, path: "/api/v1/categories"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=50"},
	{name: "comparisons", cached: true, path: "/api/v1/comparatifs"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + everything + `"}`},
	{name: "GraphQL, uncached", path: "/graphql", body: `{"query":"query Q%d ` + everything + `"}`},
}

// sample is what came of a request.
type sample struct {
	question *question
	at       time.Time // when it was due
	took     time.Duration
	status   int // 0 where there was no answer
	failure  string
	tries    int    // servers that nginx asked
	server   string // that answered
	edition  int
	mixed    string // why the answer is of more than one release
	older    bool   // than what the same process had shown before
}

// told is a refusal that says so, which an uncached read may have.
func (s *sample) told() bool { return s.status == http.StatusServiceUnavailable && !s.question.cached }

// load asks one address steadily, until it is ended.
type load struct {
	base, key string
	client    *http.Client
	cancel    context.CancelFunc
	asking    sync.WaitGroup

	mu      sync.Mutex
	samples []*sample

	shown *sightings
}

var numbers atomic.Int64

// startLoad begins to ask.
func startLoad(ctx context.Context, base, key string, shown *sightings) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{base: base, key: key, cancel: cancel, shown: shown, client: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: time.Minute},
	}}
	l.asking.Go(func() { l.run(ctx) })
	return l
}

// end stops asking, waits for the answers that are due, and returns them all.
func (l *load) end() []*sample {
	l.cancel()
	l.asking.Wait()
	l.client.CloseIdleConnections()
	return l.samples
}

func (l *load) run(ctx context.Context) {
	start := time.Now()
	for i := 0; ; i++ {
		due := start.Add(time.Duration(i) * time.Second / rate)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		n := numbers.Add(1)
		l.asking.Go(func() {
			s := l.ask(n, due)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.samples = append(l.samples, s)
		})
	}
}

func (l *load) ask(n int64, due time.Time) *sample {
	q := &questions[n%int64(len(questions))]
	s := &sample{question: q, at: due, edition: -1, tries: 1}
	before := l.shown.now()
	response, body, err := l.exchange(q, n)
	s.took = time.Since(due)
	if err != nil {
		s.failure = err.Error()
		return s
	}
	s.status = response.StatusCode
	by := strings.Split(response.Header.Get(answeredBy), ", ")
	s.tries, s.server = len(by), by[len(by)-1]
	if s.status != http.StatusOK {
		s.failure = fmt.Sprintf("%d %.80s", s.status, body)
		return s
	}
	if s.edition, err = editionOf(response.Header.Get("X-Service-Updated-At"), body); err != nil {
		s.mixed = err.Error()
	}
	if s.edition < 0 {
		if s.failure = fmt.Sprintf("%.80s", body); bytes.Contains(body, []byte(`"UNAVAILABLE"`)) || bytes.Contains(body, []byte(`"TIMEOUT"`)) {
			s.status = http.StatusServiceUnavailable // as GraphQL says it
		}
		return s
	}
	s.older = s.edition < before[s.server]
	l.shown.saw(s.server, s.edition)
	return s
}

func (l *load) exchange(q *question, n int64) (*http.Response, []byte, error) {
	numbered := func(text string) string {
		if strings.Contains(text, "%") {
			return fmt.Sprintf(text, n)
		}
		return text
	}
	method := http.MethodGet
	if q.body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, l.base+numbered(q.path), strings.NewReader(numbered(q.body)))
	if err != nil {
		return nil, nil, err
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.keyed {
		r.Header.Set("Authorization", "Bearer "+l.key)
	} else {
		r.Header.Set("X-Forwarded-For", addressOf(n/askedOf))
	}
	response, err := l.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

// addressOf is the n-th reader's.
func addressOf(n int64) string { return fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255) }
