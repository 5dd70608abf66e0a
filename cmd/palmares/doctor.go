package main

import (
	"cmp"
	"context"
	"encoding/json"
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
	JSON          bool  `help:"Print what is found as JSON, for machines."`
	wrongSettings error // what the settings' own check says
}

// Run looks at everything, and fails if something is wrong.
func (c *doctorCommand) Run(ctx context.Context, line *commandLine, parsed *kong.Context, term terminal) error {
	var found []doctor.Finding
	if c.wrongSettings != nil {
		found = []doctor.Finding{{
			Check: "settings", State: doctor.Wrong, Message: c.wrongSettings.Error() + ".",
			Advice: "Correct it: palmares --help tells the form. All else is looked at when it can be used.",
		}}
	} else {
		found = doctor.Examine(ctx, line.settings.underExamination(unknownVariables(parsed.Model)))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	print := printFindings
	if c.JSON {
		print = printFindingsJSON
	}
	if err := print(term.out, found, line.Verbose); err != nil {
		return err
	}
	wrong := 0
	for _, f := range found {
		if f.State == doctor.Wrong {
			wrong++
		}
	}
	switch wrong {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 check is wrong")
	}
	return fmt.Errorf("%d checks are wrong", wrong)
}

func (s *settings) underExamination(unknown []string) doctor.Config {
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
		Stripe:           doctor.Stripe{SecretKey: s.Stripe.SecretKey, WebhookSecret: s.Stripe.WebhookSecret, Price: s.Stripe.Price, APIBase: s.Stripe.APIBase},
		UnknownVariables: unknown,
	}
}

// ourPrefix is what only settings of palmares begin with.
const ourPrefix = "PALMARES_"

// unknownVariables are those of the environment that were surely meant for us.
func unknownVariables(model *kong.Application) (unknown []string) {
	known := settingNames(model)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, ourPrefix) && !slices.Contains(known, name) && !strings.HasPrefix(name, ourPrefix+"TEST_") {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// settingNames are the variables that settings are read from.
func settingNames(model *kong.Application) (names []string) {
	for _, flags := range model.AllFlags(false) {
		for _, flag := range flags {
			names = append(names, flag.Envs...)
		}
	}
	return names
}

func printFindings(w io.Writer, found []doctor.Finding, verbose bool) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, strings.TrimSpace(f.Message+" "+f.Advice))
		if verbose && f.Cause != nil {
			fmt.Fprintf(table, "\t\tcause: %s\n", causeOf(f))
		}
	}
	return table.Flush()
}

func printFindingsJSON(w io.Writer, found []doctor.Finding, verbose bool) error {
	type finding struct {
		doctor.Finding
		Cause string `json:"cause,omitempty"`
	}
	all := make([]finding, len(found))
	for i, f := range found {
		all[i].Finding = f
		if verbose {
			all[i].Cause = causeOf(f)
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(map[string]any{"version": version, "state": doctor.Worst(found), "checks": all})
}

// causeOf is in a library's words, which may repeat an address.
func causeOf(f doctor.Finding) string {
	if f.Cause == nil {
		return ""
	}
	return strings.Join(strings.Fields(withoutCredentials(f.Cause.Error())), " ")
}
