package lint

import (
	"context"
	"errors"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// Options of a check.
type Options struct {
	Today time.Time
	Stale int // days after which a record is stale; 0 for never
}

// Report lists what is wrong with a feed: its invalid values or, if there are none, what
// rules find. It is shown as JSON, which docs/operations.md documents.
type Report struct {
	Findings []*Finding `json:"findings"`
	Errors   int        `json:"errors"`
	Warnings int        `json:"warnings"`
	More     bool       `json:"more"` // the feed has more invalid values
}

// Finding is what a rule found.
type Finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column,omitzero"` // only in folders
	Record   string `json:"record,omitzero"` // such as tool "plume"
	Path     string `json:"path,omitzero"`   // of the value in the record; empty for the whole record
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`

	number  int // of the record in the feed
	other   int // the number of the other record of a pair
	comment int // the line of the comment that the finding is about, if it is about one
}

// Check reads a feed and checks it. Findings in a feed of lines have no file.
func Check(ctx context.Context, source feed.Source, opts Options) (*Report, error) {
	c := newChecker(opts)
	header, err := feed.Read(ctx, source, func(number int, rec record.Record) { c.record(number, rec, source.Comments(number)) })
	report := &Report{Findings: []*Finding{}}
	var invalid *feed.ValidationError
	if errors.As(err, &invalid) {
		report.More = invalid.More
		for _, e := range invalid.List {
			report.add(e.At, &Finding{Path: e.Path, Rule: Invalid, Severity: Error, Message: e.Problem, Record: e.Record})
		}
		return report, nil
	}
	if err != nil {
		return nil, err
	}
	c.header(header, source.Comments(1))
	comments := map[feed.Position]bool{}
	for _, f := range c.finish() {
		at := source.Locate(f.number, f.Path)
		if f.comment > 0 {
			at.Line, at.Column = f.comment, 1
			if comments[at] { // it is beside several records
				continue
			}
			comments[at] = true
		}
		report.add(at, f)
	}
	return report, nil
}

func (r *Report) add(at feed.Position, f *Finding) {
	f.File, f.Line, f.Column = at.File, at.Line, at.Column
	r.Findings = append(r.Findings, f)
	if f.Severity == Error {
		r.Errors++
	} else {
		r.Warnings++
	}
}
