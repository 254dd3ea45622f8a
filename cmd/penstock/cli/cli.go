// Package cli is the command penstock for programs that bring kinds of rules of their own. The
// command line that comes with Penstock knows the kinds that come with it; a service that has more,
// in core.Config.Kinds, has a penstock that knows them in three lines:
//
//	func main() {
//		os.Exit(cli.Main(quota.Kind()))
//	}
//
// All commands know the kinds then: validate, diff, push, serve, simulate, test, explain, example and the
// others, and the completion of shells.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // rules name time zones, whatever the machine knows

	"golang.org/x/term"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/rule"
)

// grace is how long a command may take to end after a signal.
const grace = 2 * time.Second

// Main runs penstock with the arguments, the streams and the environment of the process, and
// returns the code to exit with: penstock COMMAND --help has the codes. It knows the kinds beside
// those that come with Penstock. A command ends soon after SIGINT or SIGTERM; a second signal
// ends the process. Main panics when two kinds have the same name, as rules.NewTable does.
func Main(kinds ...rule.Definition) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var extended atomic.Int64
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.Sleep(grace + time.Duration(extended.Load()))
		os.Exit(command.ExitFailed) // for instance, nobody reads a full pipe
	})
	env := command.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		InIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Kinds:         kinds,
		ExtendGrace:   func(by time.Duration) { extended.Store(int64(by)) },
	}
	env.Width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 without a terminal
	if env.InIsTerminal && env.OutIsTerminal {
		env.Terminal = terminal{}
	}
	return command.Run(ctx, env, os.Args[1:])
}

// terminal is the terminal that standard input and output are.
type terminal struct{}

// Raw implements [command.Terminal].
func (terminal) Raw() (restore func(), err error) {
	before, err := term.MakeRaw(int(os.Stdin.Fd()))
	return func() { _ = term.Restore(int(os.Stdin.Fd()), before) }, err
}

// Size implements [command.Terminal].
func (terminal) Size() (columns, lines int) {
	columns, lines, _ = term.GetSize(int(os.Stdout.Fd())) // 0 if it is not known
	return columns, lines
}

// Config is what a command works with, for tests of programs that have a penstock of their own.
type Config struct {
	// Args are the arguments, without the name of the program.
	Args []string

	// In, Out and Err are the standard streams, none of them a terminal. In defaults to an
	// empty one; what is written to an Out or Err that is nil is discarded.
	In       io.Reader
	Out, Err io.Writer

	// Getenv returns a variable of the environment. Defaults to one without variables.
	Getenv func(name string) string

	// Kinds are kinds of rules beside those that come with Penstock.
	Kinds []rule.Definition
}

// Run runs penstock and returns the code that Main would return. When ctx ends it returns soon,
// unless a write to Out blocks.
func Run(ctx context.Context, c Config) int {
	env := command.Env{In: c.In, Out: c.Out, Err: c.Err, Getenv: c.Getenv, Kinds: c.Kinds}
	if env.In == nil {
		env.In = emptyInput{}
	}
	if env.Out == nil {
		env.Out = io.Discard
	}
	if env.Err == nil {
		env.Err = io.Discard
	}
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	return command.Run(ctx, env, c.Args)
}

// emptyInput is a standard input that is at its end.
type emptyInput struct{}

func (emptyInput) Read([]byte) (int, error) { return 0, io.EOF }
