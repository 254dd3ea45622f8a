// Package command holds the commands of penstock, a file each.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

// Env is what commands meet in the process that runs them.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	// InIsTerminal and the others tell that a person types and reads there.
	InIsTerminal, OutIsTerminal, ErrIsTerminal bool

	// Width is how many columns the terminal at Out has, 0 when that is unknown.
	Width int
}

// The exit codes of penstock.
const (
	ExitDone     = 0 // it is done, and the answer is yes
	ExitNo       = 1 // the answer is no: mistakes in documents, tests that failed
	ExitUsage    = 2 // the command line is wrong
	ExitFailed   = 3 // something outside failed: a file, the network, etcd; or a signal came
	ExitConflict = 4 // somebody else wrote meanwhile
	ExitNobody   = 5 // nobody is there: no instance reports, nothing is held back
)

// failure is an error with the code that the process exits with.
type failure struct {
	code int
	err  error // nil when the command has said all there is to say
}

func (f failure) Error() string {
	if f.err == nil {
		return "failed"
	}
	return f.err.Error()
}

func (f failure) Unwrap() error { return f.err }

// Run runs penstock with its arguments, without its name, and returns the exit
// code. Errors are written to env.Err. When ctx ends it returns soon, though not
// while env.Out takes nothing.
func Run(ctx context.Context, env Env, args []string) int {
	out := &answer{to: env.Out}
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
	case !errors.As(err, &f): // the command line: names of commands, flags, settings
		fmt.Fprintf(env.Err, "penstock: %v\nSee %s --help.\n", err, cmd.CommandPath())
		return ExitUsage
	case f.err != nil:
		fmt.Fprintf(env.Err, "penstock: %v\n", f.err)
	}
	return f.code
}

// interruption says that a command was broken off, and what it has to say
// besides, if that is anything else.
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
		Short: "Prove rules before they ship, ship them, and see what became of them",
		Long: `Penstock proves rules before they ship, ships them to etcd, and shows what became
of them. Each command has examples: see penstock COMMAND --help.`,
		Example: `  penstock example                              # what do rules look like?
  penstock validate rules/                      # any mistakes?
  penstock diff rules/ --app shop               # what would change?
  penstock push rules/ --app shop --wait        # ship it, until all instances have it
  penstock status --app shop                    # who runs what?`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	addGroup(root, "Prove rules:",
		newExample(env),
		newValidate(env),
		newExplain(env),
		newConvert(env),
		newSimulate(env),
		newTest(env),
	)
	addGroup(root, "Rules in etcd:",
		newDiff(env),
		newPush(env),
		newPull(env),
		newHistory(env),
		newRollback(env),
		newConfirm(env),
		newStatus(env),
	)
	completeCompletion(root)
	completeHelp(root)
	return root
}

// completeHelp makes the command for help fail for commands that there are not,
// instead of showing its own as if all were well.
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

// completeCompletion makes the command for completions refuse shells that it
// does not know, instead of showing its help as if all were well.
func completeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.Args = arguments(0, 0, "")
		}
	}
}

// addGroup adds commands below a title of the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		cmd.Flags().SortFlags = false // in the order of their weight
		cmd.DisableFlagsInUseLine = true
	}
	root.AddCommand(commands...)
}
