package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/lint"
	"palmares/internal/catalog/record"
)

// Lint checks a feed.
type Lint struct {
	File    string `arg:"" optional:"" help:"Path of the feed, a file (plain or gzip) or a folder; - for standard input."`
	Stale   *int   `help:"Also find records and sources that were not updated or checked for this many days." placeholder:"DAYS"`
	Strict  bool   `help:"Fail on warnings too."`
	Format  string `help:"Format of the output: ${enum} (${default}). github is for workflows on GitHub." enum:"text,json,github" default:"text"`
	Today   string `help:"Date as YYYY-MM-DD after which dates are in the future. Default: the latest date anywhere on Earth." placeholder:"DATE"`
	Explain string `help:"Explain a rule instead, or list all rules with all." placeholder:"RULE"`

	today time.Time
}

// latestZone is the offset of the time zone whose days begin first. An editor there may
// already use a date that a server does not have yet.
const latestZone = 14 * time.Hour

// Validate is called by kong.
func (c *Lint) Validate() (err error) {
	if (c.File == "") == (c.Explain == "") {
		return errors.New("expected either the path of a feed, or --explain with the name of a rule")
	}
	if c.Stale != nil && *c.Stale < 1 {
		return fmt.Errorf("--stale: must be at least 1 (got %d)", *c.Stale)
	}
	c.today = time.Now().UTC().Add(latestZone)
	if c.Today != "" {
		if c.today, err = time.Parse(time.DateOnly, c.Today); err != nil {
			return fmt.Errorf("--today: must be a calendar date as YYYY-MM-DD (got %s)", record.Quote(c.Today))
		}
	}
	return nil
}

// CannotCheckError means that a check could not run, unlike one that found errors.
type CannotCheckError struct{ Cause error }

func (e *CannotCheckError) Error() string { return e.Cause.Error() }
func (e *CannotCheckError) Unwrap() error { return e.Cause }

// maxFindings is how many findings are shown, except as JSON.
const maxFindings = 100

// Run prints what is wrong with a feed. It fails if there are errors.
func (c *Lint) Run(ctx context.Context, term Terminal) error {
	if c.Explain != "" {
		return c.explain(term.Out)
	}
	found, err := c.check(ctx, term)
	if err == nil {
		err = c.print(term.Out, found)
	}
	if err != nil {
		return &CannotCheckError{err}
	}
	summary := found.summary()
	if len(found.Findings) > maxFindings && c.Format != "json" {
		summary += fmt.Sprintf("; only %d are shown, --format json lists all", maxFindings)
	}
	if found.Errors > 0 || c.Strict && found.Warnings > 0 {
		return errors.New(summary)
	}
	if c.Format != "json" {
		fmt.Fprintln(term.Err, summary)
	}
	return nil
}

// findings is the result as JSON, which docs/operations.md documents.
type findings struct {
	Findings []*finding `json:"findings"`
	Errors   int        `json:"errors"`
	Warnings int        `json:"warnings"`
	More     bool       `json:"more"` // the feed has more invalid values
}

type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column,omitzero"` // only in folders
	Record   string `json:"record,omitzero"` // such as tool "plume"
	Path     string `json:"path,omitzero"`   // of the value in the record
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

func (c *Lint) check(ctx context.Context, term Terminal) (*findings, error) {
	source, err := openFeed(ctx, c.File, term.In)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	if folder, ok := source.(*folderFeed); ok {
		folder.RememberAll = true
	}
	opts := lint.Options{Today: c.today}
	if c.Stale != nil {
		opts.Stale = *c.Stale
	}
	checker := lint.New(opts)
	header, err := feed.Read(ctx, source, func(line int, rec record.Record) { checker.Record(line, rec, commentsOf(source, line)) })
	var invalid *feed.ValidationError
	found := &findings{Findings: []*finding{}}
	switch {
	case errors.As(err, &invalid):
		for _, e := range invalid.List {
			found.add(c.at(e.At), finding{Path: e.Path, Rule: lint.Invalid, Severity: lint.Error, Message: e.Problem, Record: e.Record})
		}
		found.More = invalid.More
		return found, nil
	case err != nil:
		return nil, err
	}
	checker.Header(header, commentsOf(source, 1))
	list := checker.Findings()
	if c.Format != "json" && len(list) > maxFindings { // show no warnings in place of errors
		slices.SortStableFunc(list, func(a, b lint.Finding) int { return cmp.Compare(a.Rule.Severity, b.Rule.Severity) })
	}
	comments := map[feed.Position]bool{}
	for _, f := range list {
		at := source.Locate(f.Line, f.Path)
		if f.Comment > 0 {
			at.Line, at.Column = f.Comment, 1
			if comments[at] { // it is beside several records
				continue
			}
			comments[at] = true
		}
		found.add(c.at(at), finding{Path: f.Path, Rule: f.Rule.Name, Severity: f.Rule.Severity, Message: f.Message, Record: f.Record})
	}
	return found, nil
}

// at names the file of a place in a feed file.
func (c *Lint) at(p feed.Position) feed.Position {
	p.File = cmp.Or(p.File, c.File)
	return p
}

func (f *findings) add(at feed.Position, found finding) {
	found.File, found.Line, found.Column = at.File, at.Line, at.Column
	f.Findings = append(f.Findings, &found)
	if found.Severity == lint.Error {
		f.Errors++
	} else {
		f.Warnings++
	}
}

func (f *findings) summary() string {
	plural := func(n int, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	errs := plural(f.Errors, lint.Error)
	if f.More {
		errs = "more than " + errs
	}
	return errs + ", " + plural(f.Warnings, lint.Warning)
}

func (c *Lint) print(w io.Writer, found *findings) error {
	if c.Format == "json" {
		return writeJSON(w, found)
	}
	var out strings.Builder
	for _, f := range found.Findings[:min(len(found.Findings), maxFindings)] {
		if c.Format == "github" {
			out.WriteString(c.annotation(f))
		} else {
			out.WriteString(f.text())
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return fileError("standard output", err)
}

// message is what is wrong, with the path of the value.
func (f *finding) message() string {
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Column == 0 && f.Record != "" { // the line of a feed file
		text = f.Record + ": " + text
	}
	return text
}

func (f *finding) text() string {
	severity := ""
	if f.Severity == lint.Warning {
		severity = "warning: "
	}
	return fmt.Sprintf("%s: %s%s [%s]", feed.Position{File: f.File, Line: f.Line, Column: f.Column}, severity, f.message(), f.Rule)
}

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotation is a command for workflows on GitHub, which shows the finding beside the
// line. Its path starts where the command runs, not in the folder.
func (c *Lint) annotation(f *finding) string {
	file, column := f.File, ""
	if f.Column > 0 {
		file, column = filepath.Join(c.File, f.File), fmt.Sprintf(",col=%d", f.Column)
	}
	return fmt.Sprintf("::%s file=%s,line=%d%s,title=%s::%s",
		f.Severity, escapeProperty.Replace(filepath.ToSlash(file)), f.Line, column, f.Rule, escapeData.Replace(f.message()))
}

func (c *Lint) explain(w io.Writer) error {
	rules := lint.Rules
	if c.Explain != "all" {
		rule, similar := lint.FindRule(c.Explain)
		switch {
		case rule != nil:
			rules = []lint.Rule{*rule}
		case similar != "":
			return &CannotCheckError{fmt.Errorf("there is no rule %s; did you mean %s?", record.Quote(c.Explain), similar)}
		default:
			return &CannotCheckError{fmt.Errorf("there is no rule %s; palmares lint --explain all lists them", record.Quote(c.Explain))}
		}
	}
	for i, rule := range rules {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s)\n%s\n", rule.Name, rule.Severity, rule.Explanation)
	}
	return nil
}

// commentsOf returns the comments in the file of a record, if the feed is a folder.
func commentsOf(source feed.Source, number int) (comments []lint.Comment) {
	if folder, ok := source.(*folderFeed); ok {
		for _, c := range folder.Comments(number) {
			comments = append(comments, lint.Comment(c))
		}
	}
	return comments
}
