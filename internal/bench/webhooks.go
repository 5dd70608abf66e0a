package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"palmares/internal/testdb"
)

// Webhooks: what ten endpoints that want everything cost an import, and how
// fast its events reach them.

const (
	endpoints    = 10
	patience     = 5 * time.Minute
	slowerGoal   = 1.3
	rateGoal     = 500.0
	residentGoal = 200 * megabyte
	pairs        = 3 // imports of each kind, in turns
)

// post is a row of the table.
type post struct {
	database   string
	slower     float64 // an import with endpoints, to one without
	deliveries int64
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
		var envs [2][]string // without endpoints, and with
		for i := range envs {
			envs[i] = []string{"PALMARES_DATA_DIR=" + filepath.Join(b.dir, fmt.Sprintf("webhooks-%s-%d", database, i))}
			if database == "PostgreSQL" {
				address, drop, err := testdb.Scratch(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = drop() }()
				envs[i] = append(envs[i], "DATABASE_URL="+address)
			}
		}
		row, err := b.post(envs[0], envs[1], feeds)
		if err != nil {
			return err
		}
		row.database = database
		b.posts = append(b.posts, row)
	}
	return nil
}

func (b *bench) post(without, with []string, feeds []string) (post, error) {
	var arrived atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return post{}, err
	}
	receiver := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Add(1)
	})}
	go func() { _ = receiver.Serve(listener) }()
	defer receiver.Close()

	for _, env := range [][]string{without, with} {
		if _, err := b.process(env, "import", feeds[0]); err != nil {
			return post{}, err
		}
	}
	if _, err := b.process(with, "accounts", "create", "pro@example.com", "--plan", "pro"); err != nil {
		return post{}, err
	}
	for i := range endpoints {
		address := fmt.Sprintf("http://%s/%d", listener.Addr(), i)
		if _, err := b.process(with, "webhooks", "add", "pro@example.com", address); err != nil {
			return post{}, err
		}
	}
	var took [2]time.Duration
	for turn := range pairs {
		for i, env := range [][]string{without, with} {
			m, err := b.process(env, "import", "--force", feeds[(turn+1)%2])
			if err != nil {
				return post{}, err
			}
			took[i] += m.took
		}
	}
	row := post{slower: took[1].Seconds() / took[0].Seconds()}
	server, err := b.serve(with)
	if err != nil {
		return post{}, err
	}
	defer server.stop()
	row.deliveries, row.rate = settle(&arrived)
	row.resident = server.peak()
	return row, nil
}

// settle waits until nothing more arrives, and tells how fast it came.
func settle(arrived *atomic.Int64) (n int64, rate float64) {
	for arrived.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	start, last := time.Now(), time.Now()
	for end := start.Add(patience); time.Now().Before(end) && time.Since(last) < 3*time.Second; time.Sleep(20 * time.Millisecond) {
		if now := arrived.Load(); now != n {
			n, last = now, time.Now()
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
