package testkit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"palmares/internal/dev/check"
)

// Main runs a program that uses the helpers of tests. If it fails or is
// interrupted, it exits with status 1, after its cleanups.
func Main(name string, run func(t testing.TB)) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	p := &program{name: name, ctx: ctx}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer p.cleanUp()
		run(p)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		p.Error("interrupted")
		p.cleanUp()
	}
	if p.Failed() {
		os.Exit(1)
	}
}

// Failures runs a function like a test, and returns its failures, which are not those of t.
func Failures(t testing.TB, test func(t testing.TB)) []string {
	p := &program{TB: t, ctx: t.Context()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer p.cleanUp()
		test(p)
	}()
	<-ended
	return p.failures
}

// program is a testing.TB that prints failures to standard error, if it has a name.
type program struct {
	testing.TB // nil in a program, which uses only the methods below
	name       string
	ctx        context.Context

	mu       sync.Mutex
	failures []string

	cleaning sync.Mutex
	cleanups []func()
}

func (p *program) Helper() {}

func (p *program) Context() context.Context { return p.ctx }

func (p *program) Error(args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprint(args...))
	if p.name != "" {
		fmt.Fprintln(os.Stderr, p.name+":", fmt.Sprint(args...))
	}
}

func (p *program) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures != nil
}

func (p *program) Errorf(format string, args ...any) { p.Error(fmt.Sprintf(format, args...)) }

func (p *program) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

func (p *program) Fatalf(format string, args ...any) { p.Fatal(fmt.Sprintf(format, args...)) }

func (p *program) TempDir() string {
	dir := check.Try(os.MkdirTemp("", "palmares-")).OK(p)
	p.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *program) Cleanup(f func()) {
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// cleanUp calls the cleanups, the last one first.
func (p *program) cleanUp() {
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
	p.cleanups = nil
}
