// Package command contains the commands of penstock, one file each.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Env is the environment of a command: its streams and variables.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	// InIsTerminal and the others say whether the stream is a terminal.
	InIsTerminal, OutIsTerminal, ErrIsTerminal bool

	// Width is the number of columns of the terminal at Out, 0 if unknown.
	Width int

	// Terminal is the one that In and Out are; nil if they are none.
	Terminal Terminal

	// Kinds are the kinds of rules that do not come with Penstock, as in core.Config.Kinds.
	Kinds []rule.Definition

	// ExtendGrace gives a command more time to end after a signal than the process gives
	// others. nil if nothing ends it.
	ExtendGrace func(by time.Duration)
}

// table returns all kinds of rules.
func (env Env) table() *rules.Table { return rules.NewTable(env.Kinds...) }

// The exit codes of penstock.
const (
	ExitDone     = 0 // success
	ExitNo       = 1 // a negative result: mistakes in documents, failed tests
	ExitUsage    = 2 // invalid command line
	ExitFailed   = 3 // an error of a file, the network or etcd; or a signal
	ExitConflict = 4 // somebody else wrote meanwhile
	ExitNobody   = 5 // no instance reports, or none holds anything back
)

// failure is an error with the code that the process exits with.
type failure struct {
	code int
	err  error // nil if the command has already printed the reason
}

func (f failure) Error() string {
	if f.err == nil {
		return "failed"
	}
	return f.err.Error()
}

func (f failure) Unwrap() error { return f.err }

// Run runs penstock with the arguments, without the program name, and returns the exit
// code. It writes errors to env.Err. When ctx ends, it returns soon, unless a write to
// env.Out blocks.
func Run(ctx context.Context, env Env, args []string) int {
	out := &errWriter{to: env.Out}
	env.Out = out
	root := newRoot(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var f failure
	switch {
	case out.err != nil:
		fmt.Fprintf(env.Err, "penstock: the answer cannot be written: %v\n", out.err)
		return ExitFailed
	case err == nil:
		return ExitDone
	case ctx.Err() != nil:
		fmt.Fprintf(env.Err, "penstock: %s\n", interruption(err))
		return ExitFailed
	case !errors.As(err, &f): // an error in commands, flags or settings
		fmt.Fprintf(env.Err, "penstock: %v\nSee %s --help.\n", err, cmd.CommandPath())
		return ExitUsage
	case f.err != nil:
		fmt.Fprintf(env.Err, "penstock: %v\n", f.err)
	}
	return f.code
}

// interruption returns the message for an interrupted command, with the text of the
// error if it says more than that.
func interruption(err error) string {
	text := strings.TrimSuffix(strings.TrimSuffix(err.Error(), context.Canceled.Error()), ": ")
	if text == "" || strings.HasPrefix(text, connection.Interrupted) {
		return cmp.Or(text, connection.Interrupted)
	}
	return connection.Interrupted + ": " + text
}

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "penstock",
		Short: "Test rules, publish them, and see which instances run them",
		Long: `Penstock tests rules, publishes them to etcd, and shows which instances run them.
Each command has examples: see penstock COMMAND --help.`,
		Example: `  penstock example                              # what do rules look like?
  penstock validate rules/                      # any mistakes?
  penstock diff rules/ --app shop               # what would change?
  penstock push rules/ --app shop --wait        # publish it and wait for all instances
  penstock status --app shop                    # which instance runs what?`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	addGroup(root, "Test rules:",
		newExample(env),
		newValidate(env),
		newExplain(env),
		newConvert(env),
		newSimulate(env),
		newTest(env),
	)
	addGroup(root, "Running services:",
		newTop(env),
		newQuota(env),
		newConsole(env),
		newRecord(env),
		newServe(env),
		newControl(env),
		newMetrics(env),
	)
	addGroup(root, "Rules in etcd:",
		newDiff(env),
		newPush(env),
		newPull(env),
		newHistory(env),
		newRollback(env),
		newConfirm(env),
		newStatus(env),
		newLists(env),
	)
	completeCompletion(root)
	completeHelp(root)
	rejectRepeatedFlags(root)
	return root
}

// completeHelp makes the help command return an error for unknown commands. By default
// it would print its own help.
func completeHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "help" {
			continue
		}
		cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error {
			target, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("there is no command %q: penstock --help lists them", strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		}
	}
}

// completeCompletion makes the completion command return an error for unknown shells.
// By default it would print its help.
func completeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.Args = arguments(0, 0, "")
		}
	}
}

// addGroup adds commands under a title in the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		cmd.Flags().SortFlags = false // in order of importance
		cmd.DisableFlagsInUseLine = true
	}
	root.AddCommand(commands...)
}
