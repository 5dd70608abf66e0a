package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"palmares/cmd/palmares/commands"
	"palmares/internal/ops/doctor"
	"palmares/internal/server"
)

type doctorCommand struct {
	JSON          bool  `help:"Print the findings as JSON."`
	settingsError error // set if the settings are invalid
}

// Run checks everything, and fails if something is wrong.
func (c *doctorCommand) Run(ctx context.Context, line *commandLine, term commands.Terminal) error {
	var findings []doctor.Finding
	if c.settingsError != nil {
		findings = []doctor.Finding{{
			Check: "settings", State: doctor.Wrong, Message: c.settingsError.Error() + ".",
			Advice: "Correct it (see palmares --help) and run palmares doctor again to check the rest.",
		}}
	} else {
		findings = doctor.Examine(ctx, line.settings.doctorConfig())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, f := range findings {
		findings[i].Cause = ""
		if line.Verbose { // on one line, and without credentials
			findings[i].Cause = strings.Join(strings.Fields(maskCredentials(f.Cause)), " ")
		}
	}
	print := printFindings
	if c.JSON {
		print = printFindingsJSON
	}
	if err := print(term.Out, findings); err != nil {
		return err
	}
	if doctor.Worst(findings) == doctor.Wrong {
		return errors.New("some checks failed")
	}
	return nil
}

func (s *settings) doctorConfig() doctor.Config {
	cfg := s.server(nil)
	resolved, _ := cfg.Resolved() // other checks report an invalid address
	return doctor.Config{
		OAuthDisabled:    resolved.OAuthDisabled(),
		Listen:           s.Listen,
		ListensOnAll:     !cfg.ListensOnLoopback(),
		PublicURL:        s.PublicURL,
		Private:          s.PublicURL == "" || server.IsPrivate(s.PublicURL),
		Proxies:          s.proxies,
		DatabaseURL:      s.DatabaseURL,
		DataDir:          s.DataDir,
		RedisURL:         s.RedisURL,
		Edge:             cfg.Edge,
		SMTPURL:          s.Mail.URL,
		MailFrom:         cfg.Sender(),
		Stripe:           doctor.Stripe(s.Stripe),
		MissingFacts:     s.missingFacts(),
		SecurityProblem:  s.facts.SecurityProblem(time.Now()),
		UnknownVariables: s.unknown,
	}
}

func printFindings(w io.Writer, findings []doctor.Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, strings.TrimSpace(f.Message+" "+f.Advice))
		if f.Cause != "" {
			fmt.Fprintf(table, "\t\tcause: %s\n", f.Cause)
		}
	}
	return table.Flush()
}

func printFindingsJSON(w io.Writer, findings []doctor.Finding) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]any{"version": version, "state": doctor.Worst(findings), "checks": findings})
}

// healthCommand is for container health checks: the image has neither a shell
// nor curl.
type healthCommand struct{}

// Run checks the server that listens on the configured address.
func (healthCommand) Run(ctx context.Context, s *settings, term commands.Terminal) error {
	address, err := doctor.LocalAddress(s.Listen)
	if err != nil {
		return fmt.Errorf("PALMARES_LISTEN: %w", err)
	}
	status, err := doctor.Ready(ctx, address)
	switch {
	case errors.Is(err, doctor.ErrNotPalmares):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("no server is listening on %s", s.Listen)
	case status.Error != "":
		return errors.New(status.Error)
	}
	_, err = fmt.Fprintf(term.Out, "ready, serving release %d\n", status.Release)
	return err
}
