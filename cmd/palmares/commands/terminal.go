// Package commands has the commands with which operators manage the catalog, the
// database and accounts. Start with the type of a command, such as Import: kong sets
// its fields from the command line, and calls Run with what package main provides.
package commands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// Terminal holds the standard streams of a command.
type Terminal struct {
	In       *os.File
	Out, Err io.Writer
}

// IsTerminal reports whether people read what is written to w.
func IsTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// done prints what a command did, unless it failed.
func (t Terminal) done(err error, format string, args ...any) error {
	if err == nil {
		fmt.Fprintf(t.Out, format+"\n", args...)
	}
	return err
}

// printTable prints a table with aligned columns. Tabs separate the columns.
func printTable[T any](w io.Writer, heading string, rows []T, format func(T) string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, heading)
	for _, row := range rows {
		fmt.Fprintln(out, format(row))
	}
	return out.Flush()
}

// valueOf returns the number of a flag, or 0 if it is not set.
func valueOf(number *int) int {
	if number == nil {
		return 0
	}
	return *number
}

func formatDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

var errNotConfirmed = errors.New("nothing was changed: not confirmed")

// confirm returns an error unless the operator types yes at a terminal.
func confirm(ctx context.Context, t Terminal, prompt string) error {
	if !term.IsTerminal(int(t.In.Fd())) {
		return errors.New("nothing was changed: --yes is required without a terminal")
	}
	fmt.Fprint(t.Err, prompt)
	// A read from a terminal cannot be interrupted, so it runs in its own goroutine.
	input := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(t.In).ReadString('\n')
		input <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.Err)
		return errInterrupted
	case line := <-input:
		if line != "yes" {
			return errNotConfirmed
		}
		return nil
	}
}

// progress shows the progress of an import: a bar on a terminal, and one line
// for each stage elsewhere.
type progress struct {
	w     io.Writer
	bar   bool
	stage string
	drawn time.Time
}

const (
	barWidth    = 30
	barInterval = 100 * time.Millisecond
)

func (p *progress) update(stage string, done, total int64) {
	if stage != p.stage {
		p.end(true)
		p.stage = stage
		if !p.bar {
			fmt.Fprintln(p.w, stage)
		}
	}
	if p.bar && time.Since(p.drawn) >= barInterval {
		p.draw(done, total)
	}
}

func (p *progress) draw(done, total int64) {
	p.drawn = time.Now()
	full := barWidth
	if total > 0 {
		full = min(int(barWidth*done/total), barWidth) // a file may grow while it is read
	}
	fmt.Fprintf(p.w, "\r%-20s [%s%s] %3d%%", p.stage,
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*full/barWidth)
}

// end finishes the current bar, full if the stage succeeded.
func (p *progress) end(success bool) {
	if p.bar && p.stage != "" {
		if success {
			p.draw(1, 1)
		}
		fmt.Fprintln(p.w)
	}
	p.stage = ""
}
