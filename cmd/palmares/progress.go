package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// progress shows how far an import has come: a bar on a terminal, a plain
// line for each stage elsewhere.
type progress struct {
	w     io.Writer
	bar   bool
	stage string
	drawn time.Time
}

func newProgress(w io.Writer) *progress {
	file, isFile := w.(*os.File)
	return &progress{w: w, bar: isFile && term.IsTerminal(int(file.Fd()))}
}

const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

func (p *progress) update(stage string, done, total int64) {
	if stage != p.stage {
		p.end(true)
		p.stage = stage
		if !p.bar {
			fmt.Fprintln(p.w, stage)
		}
	}
	if p.bar && time.Since(p.drawn) >= barEvery {
		p.draw(done, total)
	}
}

func (p *progress) draw(done, total int64) {
	p.drawn = time.Now()
	full := barWidth
	if total > 0 {
		full = min(int(barWidth*done/total), barWidth) // a file may grow while it is read
	}
	fmt.Fprintf(p.w, "\r%-20s [%s%s] %3d %%", p.stage,
		strings.Repeat("#", full), strings.Repeat(".", barWidth-full), 100*full/barWidth)
}

// end leaves the bar that is on the screen, full if all went well.
func (p *progress) end(well bool) {
	if p.bar && p.stage != "" {
		if well {
			p.draw(1, 1)
		}
		fmt.Fprintln(p.w)
	}
	p.stage = ""
}
