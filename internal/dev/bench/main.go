// Bench measures whole palmares processes on both databases. It prints tables
// with goals; only soak and memory fail, because machines are shared and noisy.
//
//	make bench
//	make bench PARTS="http memory"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
)

// parts are what can be measured. Those that are not standard run only if they
// are named.
var parts = []struct {
	name     string
	standard bool
	run      func(*bench, context.Context) error
}{
	{"imports", true, (*bench).imports},
	{"graphql", true, (*bench).graphql},
	{"http", true, (*bench).http},
	{"webhooks", true, (*bench).webhooks},
	{"memory", true, (*bench).memory},
	{"large", true, (*bench).large},
	{"prices", false, (*bench).prices},
	{"profile", false, (*bench).profile},
	{"soak", false, (*bench).soak},
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		var names []string
		for _, part := range parts {
			names = append(names, "["+part.name+"]")
		}
		return errors.New("usage: bench PALMARES " + strings.Join(names, " "))
	}
	switch args[0] { // processes of our own
	case "generate-load":
		return generateLoad()
	case "serve-bare":
		return serveBare()
	}
	program, remove, err := load.NewProgram(args[0])
	if err != nil {
		return err
	}
	defer remove()
	b := &bench{Program: program}
	defer b.close()
	for _, part := range parts {
		if len(args) == 1 && part.standard || slices.Contains(args[1:], part.name) {
			if err := part.run(b, ctx); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

type bench struct {
	load.Program
	databases int
	drops     []func() error
}

func (b *bench) close() {
	for _, drop := range b.drops {
		_ = drop()
	}
}

// database is a new database and the environment of processes that use it.
type database struct {
	store.Config
	name string
	env  []string
}

// kinds are the names of both databases.
var kinds = []string{"SQLite", "PostgreSQL"}

func (b *bench) newDatabase(ctx context.Context, kind string) (database, error) {
	b.databases++
	dir := filepath.Join(b.Dir, fmt.Sprintf("data-%d", b.databases))
	db := database{store.Config{DataDir: dir}, kind, []string{"PALMARES_DATA_DIR=" + dir}}
	if kind == "PostgreSQL" {
		address, drop, err := testkit.Scratch(ctx)
		if err != nil {
			return db, err
		}
		b.drops = append(b.drops, drop)
		db.DatabaseURL = address
		db.env = append(db.env, "DATABASE_URL="+address)
	}
	return db, nil
}

// feed generates a feed, unless it exists. Seeds make different catalogs.
func (b *bench) feed(tools, seed int) (string, error) {
	file := filepath.Join(b.Dir, fmt.Sprintf("%d-%d.ndjson", tools, seed))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	_, _, err := b.Run(nil, "generate", "--tools", fmt.Sprint(tools), "--seed", fmt.Sprint(seed), file)
	return file, err
}

// importFeed imports a generated feed into a database.
func (b *bench) importFeed(db database, tools int) (load.Usage, error) {
	file, err := b.feed(tools, 1)
	if err != nil {
		return load.Usage{}, err
	}
	_, usage, err := b.Run(db.env, "import", file)
	return usage, err
}

// serveCatalog imports a feed, creates a key and starts a server.
func (b *bench) serveCatalog(ctx context.Context, kind string, tools int, env ...string) (db database, server *load.Process, key string, err error) {
	if db, err = b.newDatabase(ctx, kind); err != nil {
		return db, nil, "", err
	}
	if _, err = b.importFeed(db, tools); err != nil {
		return db, nil, "", err
	}
	if key, err = b.CreateKey(db.env); err != nil {
		return db, nil, "", err
	}
	db.env = append(db.env, env...)
	server, err = b.Serve(db.env, io.Discard)
	return db, server, key, err
}

// imports measures imports, and how soon a server is ready.
func (b *bench) imports(ctx context.Context) error {
	table := load.NewTable("operation", "database", "time", "goal", "peak memory", "goal")
	for _, kind := range kinds {
		var db database
		for _, step := range []struct {
			name       string
			tools      int
			again      bool
			goal       time.Duration
			memoryGoal int64
		}{
			{"import of 5,000 tools", 5_000, false, 3 * time.Second, 0},
			{"import of 100,000 tools", 100_000, false, time.Minute, 400 * megabyte},
			{"the same again, unchanged", 100_000, true, 20 * time.Second, 0},
		} {
			progress("%s, %s", kind, step.name)
			if !step.again {
				var err error
				if db, err = b.newDatabase(ctx, kind); err != nil {
					return err
				}
			}
			usage, err := b.importFeed(db, step.tools)
			if err != nil {
				return err
			}
			table.Add(step.name, kind, usage.Time.Round(time.Millisecond), step.goal, inMB(usage.Peak), inMB(step.memoryGoal))
		}
		start := time.Now()
		server, err := b.Serve(db.env, io.Discard)
		if err != nil {
			return err
		}
		body, err := fetch("http://" + server.Address + "/readyz")
		table.Add("serve until ready, 100,000 tools", kind, time.Since(start).Round(time.Millisecond), 300*time.Millisecond)
		server.Kill()
		if err != nil || !strings.Contains(string(body), `"release":`) {
			return fmt.Errorf("the server is not ready: %s", body)
		}
	}
	return table.Print(os.Stdout)
}

const megabyte = 1 << 20

func inMB(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", bytes/megabyte)
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// fetch returns the body of a URL.
func fetch(url string) ([]byte, error) {
	_, body, err := load.Do(context.Background(), load.Client, url, "")
	return body, err
}
