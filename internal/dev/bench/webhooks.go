package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"

	"palmares/ent/journalentry"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Webhooks: what ten endpoints that want everything cost an import, and how
// fast its events reach them. That one is lost is an error.

const (
	endpoints    = 10
	silence      = time.Minute // after which nothing more is waited for
	slowerGoal   = 1.3
	rateGoal     = 500.0
	residentGoal = 200 * megabyte
	pairs        = 3 // imports of each kind, in turns
)

// post is a row of the table.
type post struct {
	database   string
	slower     float64 // an import with endpoints, to one without
	deliveries int
	rate       float64 // a second
	resident   int64
}

func (b *bench) webhooks(ctx context.Context) error {
	var feeds []string
	for revision := range 2 {
		feeds = append(feeds, filepath.Join(b.dir, fmt.Sprintf("webhooks-%d.ndjson", revision)))
		if _, err := b.process(nil, "generate", "--tools", "5000", "--seed", fmt.Sprint(revision+1), feeds[revision]); err != nil {
			return err
		}
	}
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		fmt.Fprintf(os.Stderr, "%s, webhooks\n", database)
		var at [2]store.Config // without endpoints, and with
		for i := range at {
			at[i].DataDir = filepath.Join(b.dir, fmt.Sprintf("webhooks-%s-%d", database, i))
			if database == "PostgreSQL" {
				address, drop, err := testkit.Scratch(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = drop() }()
				at[i].DatabaseURL = address
			}
		}
		row, err := b.post(ctx, at[0], at[1], feeds)
		if err != nil {
			return err
		}
		row.database = database
		b.posts = append(b.posts, row)
	}
	return nil
}

func (b *bench) post(ctx context.Context, without, with store.Config, feeds []string) (post, error) {
	arrived := &arrivals{seen: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return post{}, err
	}
	receiver := &http.Server{Handler: arrived}
	go func() { _ = receiver.Serve(listener) }()
	defer receiver.Close()

	envs := [][]string{environment(without), environment(with)}
	for _, env := range envs {
		if _, err := b.process(env, "import", feeds[0]); err != nil {
			return post{}, err
		}
	}
	if _, err := b.process(envs[1], "accounts", "create", "pro@example.com", "--plan", "pro"); err != nil {
		return post{}, err
	}
	for i := range endpoints {
		address := fmt.Sprintf("http://%s/%d", listener.Addr(), i)
		if _, err := b.process(envs[1], "webhooks", "add", "pro@example.com", address); err != nil {
			return post{}, err
		}
	}
	before, err := events(ctx, with)
	if err != nil {
		return post{}, err
	}
	var took [2]time.Duration
	for turn := range pairs {
		for i, env := range envs {
			m, err := b.process(env, "import", "--force", feeds[(turn+1)%2])
			if err != nil {
				return post{}, err
			}
			took[i] += m.took
		}
	}
	after, err := events(ctx, with)
	if err != nil {
		return post{}, err
	}
	row := post{slower: took[1].Seconds() / took[0].Seconds()}
	server, err := b.serve(envs[1])
	if err != nil {
		return post{}, err
	}
	defer server.stop()
	due := endpoints * (after - before)
	row.deliveries, row.rate = arrived.wait(due)
	row.resident = server.peak()
	if row.deliveries != due {
		return row, fmt.Errorf("%d of %d deliveries have arrived", row.deliveries, due)
	}
	return row, nil
}

// environment tells a process of its own about a database.
func environment(cfg store.Config) []string {
	return []string{"PALMARES_DATA_DIR=" + cfg.DataDir, "DATABASE_URL=" + cfg.DatabaseURL}
}

// events is how many there are.
func events(ctx context.Context, cfg store.Config) (int, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return db.Read.JournalEntry.Query().Where(journalentry.EventNotNil()).Count(ctx)
}

// arrivals is a receiver that knows which events have come to which endpoint.
type arrivals struct {
	mu   sync.Mutex
	seen map[string]bool
}

// ServeHTTP takes a delivery.
func (a *arrivals) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[r.URL.Path+" "+r.Header.Get("webhook-id")] = true
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// wait is for what is due, while something comes, and tells how fast it came.
func (a *arrivals) wait(due int) (n int, rate float64) {
	last := time.Now()
	var start time.Time
	for n < due && time.Since(last) < silence {
		time.Sleep(5 * time.Millisecond)
		if now := a.count(); now != n {
			if n, last = now, time.Now(); start.IsZero() {
				start = last
			}
		}
	}
	return n, float64(n) / last.Sub(start).Seconds()
}

func (b *bench) printPosts(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| webhooks, 10 endpoints, 5,000 tools changed\t| import, to one without\t| goal\t| deliveries\t| a second\t| goal\t| memory\t| goal\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, p := range b.posts {
		fmt.Fprintf(table, "| %s\t| %.2f\t| %.1f\t| %d\t| %.0f\t| %.0f\t| %s\t| %s\t|\n",
			p.database, p.slower, slowerGoal, p.deliveries, p.rate, rateGoal, bytes(p.resident), bytes(residentGoal))
	}
	return table.Flush()
}
