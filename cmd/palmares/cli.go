package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"palmares/auth"
	"palmares/cmd/palmares/commands"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
	"palmares/internal/notify/webhook"
	"palmares/internal/server"
	"palmares/internal/transport/saved"
	"palmares/internal/web/prose"
	"palmares/rest"
)

// version and commit are set by the linker: see the Makefile.
var version, commit = "development", "unknown"

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage // invalid arguments or settings, or a check that cannot run
)

// commandLine declares all settings and commands.
type commandLine struct {
	settings
	Verbose bool `help:"Show the cause of errors."`

	Serve    serveCommand      `cmd:"" help:"Start the server."`
	Import   commands.Import   `cmd:"" help:"Import a feed atomically."`
	Export   commands.Export   `cmd:"" help:"Export the catalog as a feed."`
	Lint     commands.Lint     `cmd:"" help:"Check a feed for errors and for what is probably wrong."`
	Diff     commands.Diff     `cmd:"" help:"Show what an import would change, as Markdown for a pull request."`
	Schemas  commands.Schemas  `cmd:"" help:"Write the JSON Schemas of a feed to a folder, for editors."`
	New      commands.New      `cmd:"" help:"Write the file of a new record into a catalog folder."`
	Retire   commands.Retire   `cmd:"" help:"Move a tool of a catalog folder to the retired tools."`
	Releases commands.Releases `cmd:"" help:"List all releases of the catalog, newest first."`
	History  commands.History  `cmd:"" help:"Manage the history of the catalog."`
	Generate commands.Generate `cmd:"" help:"Generate a synthetic feed for load tests."`
	Accounts commands.Accounts `cmd:"" help:"Manage accounts."`
	Keys     commands.Keys     `cmd:"" help:"Manage API keys."`
	Billing  commands.Billing  `cmd:"" help:"Set up Stripe and sync subscriptions."`
	Webhooks commands.Webhooks `cmd:"" help:"Manage webhook endpoints."`
	Queries  commands.Queries  `cmd:"" help:"Manage saved queries."`
	MCP      mcpCommand        `cmd:"" name:"mcp" help:"Serve the catalog to an AI agent on this machine, over standard input and output."`
	Openapi  openapiCommand    `cmd:"" help:"Print the OpenAPI document of the REST API."`
	Migrate  commands.Migrate  `cmd:"" help:"Show or apply database migrations."`
	Backup   commands.Backup   `cmd:"" help:"Back up the embedded database, even while a server uses it."`
	Doctor   doctorCommand     `cmd:"" help:"Check the settings and all services that the server uses, and suggest fixes."`
	Health   healthCommand     `cmd:"" help:"Check whether the server on this machine is ready."`
	Version  versionCommand    `cmd:"" help:"Print the version."`
}

// enums are values of the catalog that commands accept.
var enums = kong.Vars{"reasons": strings.Join(record.Codes("retired_reason"), ",")}

// run parses the command line, runs the command and returns the exit code.
func run(ctx context.Context, args []string, term commands.Terminal) int {
	var line commandLine
	helpShown := false
	parser, err := kong.New(&line, kong.Name("palmares"),
		kong.Description("The API of a catalog of tested AI tools: scores, comparisons, prices and reviews."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true}),
		kong.Help(printHelp),
		enums,
		kong.Writers(term.Out, term.Err),
		kong.Exit(func(int) { helpShown = true }),
	)
	if err != nil {
		panic(err) // commandLine is invalid
	}
	command, err := parser.Parse(args)
	if helpShown {
		return exitOK
	}
	if err != nil {
		err = errors.New(maskCredentials(err.Error()))
	} else {
		isDoctor := command.Command() == "doctor"
		if err = line.settings.check(command.Flags()); err == nil && (isDoctor || command.Command() == "serve") {
			err = line.settings.checkServer(settingNames(parser.Model.Flags))
		}
		if isDoctor { // it reports invalid settings itself
			line.Doctor.settingsError, err = err, nil
		}
	}
	if err != nil {
		fmt.Fprintf(term.Err, "palmares: %v\n", err)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := runCommand(ctx, command, &line.settings, term); err != nil {
		printError(term.Err, err, line.Verbose)
		if errors.As(err, new(*commands.CannotCheckError)) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// runCommand runs a command, without the log lines that only operators of servers need. Run
// methods take what they need as parameters, and only that is made.
func runCommand(ctx context.Context, command *kong.Context, s *settings, term commands.Terminal) error {
	cfg := s.server(slog.New(slog.NewTextHandler(term.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	var opened *store.Store
	defer func() {
		if opened != nil {
			_ = opened.Close()
		}
	}()
	for _, provider := range []any{
		func() (_ *store.Store, err error) {
			opened, err = openFor(ctx, command.Command(), cfg.Database)
			return opened, err
		},
		auth.NewAccounts,
		cfg.Mailer,
		cfg.Billing,
		func(db *store.Store) *webhook.Webhooks {
			return cfg.Webhooks(db, release.NewCatalog(db, cfg.Log, 0, nil).Load)
		},
		func(db *store.Store, mailer *mail.Mailer) *outbox.Outbox { return outbox.New(db, mailer, cfg.Log) },
		func(db *store.Store) (*saved.Queries, error) {
			resolved, err := cfg.Resolved()
			if err != nil {
				return nil, err
			}
			return server.Queries(ctx, resolved, db)
		},
		func() (commands.Readme, error) { return editorsGuide(cfg) },
	} {
		if err := command.BindSingletonProvider(provider); err != nil {
			panic(err) // it has no result
		}
	}
	err := command.Run(s, cfg, cfg.Database, term)
	var databaseErr *store.Error
	if err != nil && strings.HasPrefix(err.Error(), "*") && errors.As(err, &databaseErr) { // kong adds the type of what needs the database
		return databaseErr
	}
	return err
}

// openFor opens the database of a command. Commands about accounts migrate it; those about
// the catalog read one that exists, even before an upgrade.
func openFor(ctx context.Context, command string, cfg store.Config) (*store.Store, error) {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case name == "migrate":
		return store.Open(ctx, cfg)
	case command == "queries check" || name == "mcp":
		cfg.MustExist = true
		return store.Open(ctx, cfg)
	case slices.Contains([]string{"export", "releases", "history"}, name):
		return store.OpenMigrated(ctx, cfg)
	}
	return server.Open(ctx, cfg)
}

// editorsGuide returns the guide for editors, as the server would serve it.
func editorsGuide(cfg server.Config) (commands.Readme, error) {
	cfg, err := cfg.Resolved()
	if err != nil {
		return "", err
	}
	guides, err := prose.ReadGuides(cfg.Service(), lang.English)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(guides, func(g *prose.Guide) bool { return g.Name == "editors" })
	return commands.Readme(guides[i].Markdown), nil
}

// printHelp hides the settings in the help of all commands except serve.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	if selected := command.Selected(); selected != nil && selected.Name != "serve" {
		for _, flag := range command.Model.Flags {
			flag.Hidden = flag.Name != "help"
		}
		defer fmt.Fprintln(command.Stdout, "\nSettings such as --data-dir and --database-url apply to every command: see palmares --help.")
	}
	return kong.DefaultHelpPrinter(options, command)
}

// credentials matches the user and password in URLs, API keys and Stripe's keys.
var credentials = regexp.MustCompile(`(://)\S*(@)|(pal_|sk_|rk_|whsec_)[0-9A-Za-z_]{8,}`)

// maskCredentials removes secrets from error messages, which may repeat
// arguments.
func maskCredentials(text string) string {
	return credentials.ReplaceAllString(text, "$1$3…$2")
}

// printError prints an error and, if verbose, the library's error that caused it.
func printError(w io.Writer, err error, verbose bool) {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(w, "palmares: %v\n", err)
	if !verbose {
		return
	}
	var databaseErr *store.Error
	var p *problem.Problem
	switch {
	case errors.As(err, &databaseErr) && databaseErr.Cause != nil:
		fmt.Fprintf(w, "cause: %v\n", databaseErr.Cause)
	case errors.As(err, &p) && p.Cause != nil:
		fmt.Fprintf(w, "cause: %v\n", p.Cause)
	}
}

type openapiCommand struct{}

// Run prints the OpenAPI document of a server with these settings, with examples from
// the demo catalog.
func (openapiCommand) Run(cfg server.Config, term commands.Terminal) error {
	cfg, err := cfg.Resolved()
	if err != nil {
		return err
	}
	document, err := rest.Describe(cfg.REST())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(term.Out, "%s\n", document)
	return err
}

type versionCommand struct{}

func (versionCommand) Run(term commands.Terminal) error {
	_, err := fmt.Fprintf(term.Out, "palmares %s (commit %s, %s, %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
