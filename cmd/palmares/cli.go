package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/alecthomas/kong"

	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Exit codes: 1 for what failed, 2 for what was asked wrongly.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// commandLine is every setting and command there is.
type commandLine struct {
	settings
	Verbose bool `help:"Show the cause of an error, too." env:"PALMARES_VERBOSE"`

	Serve    serveCommand    `cmd:"" help:"Serve the catalog over HTTP."`
	Import   importCommand   `cmd:"" help:"Publish a feed: all of it, or on any error nothing."`
	Export   exportCommand   `cmd:"" help:"Write the catalog as a feed."`
	Generate generateCommand `cmd:"" help:"Write a synthetic feed, for load tests."`
	Accounts accountsCommand `cmd:"" help:"Open, show and change accounts."`
	Keys     keysCommand     `cmd:"" help:"Make, list and revoke API keys."`
	Billing  billingCommand  `cmd:"" help:"Set up and check the selling of Pro."`
	Webhooks webhooksCommand `cmd:"" help:"See to the endpoints that events are sent to."`
	Openapi  openapiCommand  `cmd:"" help:"Print the OpenAPI document of the REST interface."`
	Migrate  migrateCommand  `cmd:"" help:"Show or apply the database's migrations."`
	Backup   backupCommand   `cmd:"" help:"Copy the embedded database to a file, also while a server uses it."`
	Doctor   doctorCommand   `cmd:"" help:"Look at everything a server works with, and say what to do about what is not well."`
	Health   healthCommand   `cmd:"" help:"Ask the server of this machine whether it is ready."`
	Version  versionCommand  `cmd:"" help:"Tell which palmares this is."`
}

// terminal is where a command reads and writes.
type terminal struct {
	in       *os.File
	out, err io.Writer
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, term terminal) (code int) {
	var line commandLine
	parser, err := kong.New(&line, kong.Name("palmares"),
		kong.Description("A catalog of tested AI tools: scores, comparisons, prices and reviews."),
		kong.Writers(term.out, term.err),
		kong.Exit(func(code int) { panic(helpShown(code)) }),
	)
	if err != nil {
		panic(err) // the struct above is wrong
	}
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case helpShown:
			code = int(caught)
		default:
			panic(caught)
		}
	}()
	command, err := parser.Parse(args)
	if err != nil {
		err = errors.New(withoutCredentials(err.Error()))
	} else {
		err = line.settings.check()
		if command.Command() == "doctor" { // what is wrong is its business
			line.Doctor.wrongSettings, err = err, nil
		}
	}
	if err != nil {
		fmt.Fprintf(term.err, "palmares: %v\n", err)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(&line.settings, term); err != nil {
		complain(term.err, err, line.Verbose)
		return exitFailed
	}
	return exitOK
}

// helpShown unwinds to run when the parser has printed help and wants to exit.
type helpShown int

// credentials are what an address holds before its last @, and keys, ours and
// Stripe's.
var credentials = regexp.MustCompile(`(://)\S*(@)|(pal_|sk_|rk_|whsec_)[0-9A-Za-z_]{8,}`)

// withoutCredentials keeps a password out of the parser's errors, which repeat
// what they do not understand.
func withoutCredentials(text string) string {
	return credentials.ReplaceAllString(text, "$1$3…$2")
}

// complain tells an error in our words; the cause, in a library's, only when
// asked for.
func complain(w io.Writer, err error, verbose bool) {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(w, "palmares: %v\n", err)
	if !verbose {
		return
	}
	var fault *store.Fault
	var trouble *problem.Problem
	switch {
	case errors.As(err, &fault) && fault.Cause != nil:
		fmt.Fprintf(w, "cause: %v\n", fault.Cause)
	case errors.As(err, &trouble) && trouble.Cause != nil:
		fmt.Fprintf(w, "cause: %v\n", trouble.Cause)
	}
}

// openStore opens the database that the settings name.
func openStore(ctx context.Context, s *settings) (*store.Store, error) {
	return store.Open(ctx, store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir, ForImport: s.importing})
}

// openMigrated also applies what migrations are missing.
func openMigrated(ctx context.Context, s *settings) (*store.Store, error) {
	return migrated(ctx, store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir, ForImport: s.importing})
}

func migrated(ctx context.Context, cfg store.Config) (*store.Store, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := db.Migrate(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}
