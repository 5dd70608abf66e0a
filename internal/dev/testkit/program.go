package testkit

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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
	if p.failed.Load() {
		os.Exit(1)
	}
}

// program is a testing.TB that prints failures to standard error.
type program struct {
	testing.TB // nil: programs use only the methods below
	name       string
	ctx        context.Context
	failed     atomic.Bool
	mu         sync.Mutex
	cleanups   []func()
}

func (p *program) Helper() {}

func (p *program) Context() context.Context { return p.ctx }

func (p *program) Error(args ...any) {
	p.failed.Store(true)
	fmt.Fprintln(os.Stderr, p.name+":", fmt.Sprint(args...))
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

// cleanUp calls the cleanups, the last one first.
func (p *program) cleanUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
	p.cleanups = nil
}
