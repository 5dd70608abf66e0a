package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"palmares/internal/ops/doctor"
)

type doctorCommand struct {
	JSON          bool  `help:"Print the findings as JSON."`
	settingsError error // set if the settings are invalid
}

// Run checks everything, and fails if something is wrong.
func (c *doctorCommand) Run(ctx context.Context, line *commandLine, parsed *kong.Context, term terminal) error {
	var findings []doctor.Finding
	if c.settingsError != nil {
		findings = []doctor.Finding{{
			Check: "settings", State: doctor.Wrong, Message: c.settingsError.Error() + ".",
			Advice: "Correct it (see palmares --help) and run palmares doctor again to check the rest.",
		}}
	} else {
		findings = doctor.Examine(ctx, line.settings.doctorConfig(unknownVariables(parsed.Model)))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	print := printFindings
	if c.JSON {
		print = printFindingsJSON
	}
	if err := print(term.out, findings, line.Verbose); err != nil {
		return err
	}
	if doctor.Worst(findings) == doctor.Wrong {
		return errors.New("some checks failed")
	}
	return nil
}

func (s *settings) doctorConfig(unknown []string) doctor.Config {
	return doctor.Config{
		Listen:           s.Listen,
		ListensToAll:     !s.listensOnLoopback(),
		PublicURL:        s.PublicURL,
		Private:          s.PublicURL == "" || isPrivate(s.PublicURL),
		Proxies:          s.proxies,
		DatabaseURL:      s.DatabaseURL,
		ReadURL:          s.ReadURL,
		DataDir:          s.DataDir,
		RedisURL:         s.RedisURL,
		SMTPURL:          s.Mail.URL,
		MailFrom:         cmp.Or(s.Mail.From, s.defaultSender()),
		Stripe:           doctor.Stripe(s.Stripe),
		UnknownVariables: unknown,
	}
}

// settingPrefix is the prefix of variables that belong to palmares only.
const settingPrefix = "PALMARES_"

// unknownVariables returns environment variables that look like misspelt
// settings.
func unknownVariables(model *kong.Application) (unknown []string) {
	known := settingNames(model)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, settingPrefix) && !slices.Contains(known, name) && !strings.HasPrefix(name, settingPrefix+"TEST_") {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// settingNames returns the environment variables of all settings.
func settingNames(model *kong.Application) (names []string) {
	for _, flags := range model.AllFlags(false) {
		for _, flag := range flags {
			names = append(names, flag.Envs...)
		}
	}
	return names
}

func printFindings(w io.Writer, findings []doctor.Finding, verbose bool) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, strings.TrimSpace(f.Message+" "+f.Advice))
		if verbose && f.Cause != nil {
			fmt.Fprintf(table, "\t\tcause: %s\n", causeText(f))
		}
	}
	return table.Flush()
}

func printFindingsJSON(w io.Writer, findings []doctor.Finding, verbose bool) error {
	type finding struct {
		doctor.Finding
		Cause string `json:"cause,omitempty"`
	}
	all := make([]finding, len(findings))
	for i, f := range findings {
		all[i].Finding = f
		if verbose {
			all[i].Cause = causeText(f)
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]any{"version": version, "state": doctor.Worst(findings), "checks": all})
}

// causeText returns a library's error on one line, without credentials.
func causeText(f doctor.Finding) string {
	if f.Cause == nil {
		return ""
	}
	return strings.Join(strings.Fields(maskCredentials(f.Cause.Error())), " ")
}

// healthCommand is for container health checks: the image has neither a shell
// nor curl.
type healthCommand struct{}

// Run checks the server that listens on the configured address.
func (healthCommand) Run(ctx context.Context, s *settings, term terminal) error {
	address, err := doctor.LocalAddress(s.Listen)
	if err != nil {
		return fmt.Errorf("PALMARES_LISTEN: %w", err)
	}
	status, err := doctor.Ready(ctx, address)
	var notReady *doctor.NotReady
	switch {
	case errors.As(err, &notReady):
		return notReady
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("no server is listening on %s", s.Listen)
	}
	_, err = fmt.Fprintf(term.out, "ready, serving release %d\n", status.Release)
	return err
}
