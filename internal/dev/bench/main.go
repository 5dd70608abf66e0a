// Bench measures the program as its operators meet it: whole processes, on
// both databases, with their peak memory. It prints a table and asserts
// nothing: machines are shared and noisy.
//
//	make bench
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"palmares/internal/dev/testkit"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: bench PALMARES [imports] [graphql] [http] [webhooks] [large] [memory] | prices | profile | soak")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "load":
		err = generateLoad()
	case "bare":
		err = serveBare()
	default:
		err = run(context.Background(), os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurement is one row of the table.
type measurement struct {
	what, database string
	took           time.Duration
	goal           time.Duration
	peak           int64 // bytes; 0 where it was not measured
	memoryGoal     int64
}

const megabyte = 1 << 20

func run(ctx context.Context, binary string, parts []string) error {
	path, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "palmares-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{palmares: path, dir: dir}
	wanted := func(part string) bool { return len(parts) == 0 || slices.Contains(parts, part) }
	sizes := []int{5_000}
	if wanted("imports") || wanted("large") {
		sizes = append(sizes, 100_000)
	}
	if slices.Contains(parts, "soak") {
		duration, err := soakTime()
		if err != nil {
			return err
		}
		return b.soak(duration)
	}
	if slices.Contains(parts, "prices") {
		return b.prices(ctx)
	}
	if err := b.generate(sizes...); err != nil {
		return err
	}
	if wanted("imports") {
		if err := errors.Join(b.embedded(), b.postgres(ctx), b.print(os.Stdout)); err != nil {
			return err
		}
	}
	if wanted("graphql") {
		if err := errors.Join(b.graphql(ctx), b.printRatios(os.Stdout)); err != nil {
			return err
		}
	}
	if slices.Contains(parts, "profile") {
		return b.profile()
	}
	if wanted("http") {
		if err := errors.Join(b.http(ctx), b.printContests(os.Stdout)); err != nil {
			return err
		}
	}
	if wanted("webhooks") {
		if err := errors.Join(b.webhooks(ctx), b.printPosts(os.Stdout)); err != nil {
			return err
		}
	}
	if wanted("memory") {
		if err := b.memory(ctx); err != nil {
			return err
		}
	}
	if wanted("large") {
		return errors.Join(b.large(ctx), b.printSizes(os.Stdout))
	}
	return nil
}

type bench struct {
	palmares string
	dir      string
	rows     []measurement
	ratios   []ratio
	fights   []fight
	memories []string
	sizes    []size
	posts    []post
}

func (b *bench) feed(tools int) string { return filepath.Join(b.dir, fmt.Sprintf("%d.ndjson", tools)) }

func (b *bench) generate(sizes ...int) error {
	for _, tools := range sizes {
		if _, err := b.process(nil, "generate", "--tools", fmt.Sprint(tools), b.feed(tools)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) embedded() error {
	small := []string{"PALMARES_DATA_DIR=" + filepath.Join(b.dir, "small")}
	large := []string{"PALMARES_DATA_DIR=" + filepath.Join(b.dir, "large")}
	if err := b.imports("SQLite", small, large); err != nil {
		return err
	}
	return b.start(large)
}

func (b *bench) postgres(ctx context.Context) error {
	var env [2][]string
	for i := range env {
		address, drop, err := testkit.Scratch(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = drop() }()
		env[i] = []string{"DATABASE_URL=" + address}
	}
	return b.imports("PostgreSQL", env[0], env[1])
}

func (b *bench) imports(database string, small, large []string) error {
	for _, m := range []struct {
		what       string
		env        []string
		tools      int
		goal       time.Duration
		memoryGoal int64
	}{
		{"import of 5,000 tools", small, 5_000, 3 * time.Second, 0},
		{"import of 100,000 tools", large, 100_000, 60 * time.Second, 400 * megabyte},
		{"the same again, unchanged", large, 100_000, 20 * time.Second, 0},
	} {
		fmt.Fprintf(os.Stderr, "%s, %s\n", database, m.what)
		used, err := b.process(m.env, "import", b.feed(m.tools))
		if err != nil {
			return err
		}
		used.what, used.database, used.goal, used.memoryGoal = m.what, database, m.goal, m.memoryGoal
		b.rows = append(b.rows, used)
	}
	return nil
}

// process runs palmares to its end, with its time and peak memory.
func (b *bench) process(env []string, args ...string) (measurement, error) {
	cmd := exec.Command(b.palmares, args...)
	cmd.Env = append(os.Environ(), env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return measurement{}, fmt.Errorf("palmares %s: %w\n%s", args[0], err, out)
	}
	m := measurement{took: time.Since(start)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.peak = int64(usage.Maxrss) * 1024 // in kilobytes on Linux
	}
	return m, nil
}

// start measures from the process's start until it says that it is ready.
func (b *bench) start(env []string) error {
	cmd := exec.Command(b.palmares, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	ready := regexp.MustCompile(`http://\S+/readyz`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		address := ready.FindString(lines.Text())
		if address == "" {
			continue
		}
		response, err := http.Get(address)
		if err != nil {
			return err
		}
		took := time.Since(begin)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if err != nil || !strings.Contains(string(body), `"release":1`) {
			return fmt.Errorf("the server is not ready: %s", body)
		}
		b.rows = append(b.rows, measurement{what: "serve until ready, 100,000 tools", database: "SQLite", took: took, goal: 300 * time.Millisecond})
		return nil
	}
	return errors.New("the server did not start")
}

func (b *bench) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| what\t| database\t| time\t| goal\t| peak memory\t| goal\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, m := range b.rows {
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n",
			m.what, m.database, m.took.Round(time.Millisecond), m.goal, bytes(m.peak), bytes(m.memoryGoal))
	}
	return table.Flush()
}

func bytes(n int64) string {
	if n == 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d MB", n/megabyte))
}
