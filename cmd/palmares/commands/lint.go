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
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/lint"
	"palmares/internal/catalog/record"
	"palmares/internal/core/disk"
)

// Lint checks a feed.
type Lint struct {
	File    string `arg:"" optional:"" help:"Path of the feed, a file (plain or gzip) or a folder; - for standard input."`
	Stale   *int   `help:"Also find records and sources that were not updated or checked for this many days." placeholder:"DAYS" min:"1"`
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
	summary := summarize(found)
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

func (c *Lint) check(ctx context.Context, term Terminal) (*lint.Report, error) {
	source, err := folder.OpenFeed(ctx, c.File, term.In)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	report, err := lint.Check(ctx, source, lint.Options{Today: c.today, Stale: valueOf(c.Stale)})
	if err != nil {
		return nil, err
	}
	for _, f := range report.Findings {
		f.File = cmp.Or(f.File, c.File)
	}
	if c.Format != "json" && len(report.Findings) > maxFindings { // show no warnings in place of errors
		slices.SortStableFunc(report.Findings, func(a, b *lint.Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	}
	return report, nil
}

func summarize(r *lint.Report) string {
	errs := count(r.Errors, lint.Error)
	if r.More {
		errs = "more than " + errs
	}
	return errs + ", " + count(r.Warnings, lint.Warning)
}

func (c *Lint) print(w io.Writer, found *lint.Report) error {
	if c.Format == "json" {
		return writeJSON(w, found)
	}
	var out strings.Builder
	for _, f := range found.Findings[:min(len(found.Findings), maxFindings)] {
		if c.Format == "github" {
			out.WriteString(c.annotation(f))
		} else {
			out.WriteString(formatFinding(f))
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return disk.Error("standard output", err)
}

// messageOf says what is wrong, with the path of the value.
func messageOf(f *lint.Finding) string {
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Column == 0 && f.Record != "" { // the line of a feed file
		text = f.Record + ": " + text
	}
	return text
}

func formatFinding(f *lint.Finding) string {
	severity := ""
	if f.Severity == lint.Warning {
		severity = "warning: "
	}
	return fmt.Sprintf("%s: %s%s [%s]", feed.Position{File: f.File, Line: f.Line, Column: f.Column}, severity, messageOf(f), f.Rule)
}

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// annotation is a command for workflows on GitHub, which shows the finding beside the
// line. Its path starts where the command runs, not in the folder.
func (c *Lint) annotation(f *lint.Finding) string {
	file, column := f.File, ""
	if f.Column > 0 {
		file, column = filepath.Join(c.File, f.File), fmt.Sprintf(",col=%d", f.Column)
	}
	return fmt.Sprintf("::%s file=%s,line=%d%s,title=%s::%s",
		f.Severity, escapeProperty.Replace(filepath.ToSlash(file)), f.Line, column, f.Rule, escapeData.Replace(messageOf(f)))
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
