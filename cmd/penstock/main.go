// Command penstock tests rules, publishes them to etcd, and shows which instances
// run them: see penstock --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// grace is how long a command may take to end after a signal.
const grace = 2 * time.Second

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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.Sleep(grace)
		os.Exit(command.ExitFailed) // for instance, nobody reads a full pipe
	})
	env := command.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		InIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	env.Width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 without a terminal
	if env.InIsTerminal && env.OutIsTerminal {
		env.Terminal = terminal{}
	}
	os.Exit(command.Run(ctx, env, os.Args[1:]))
}
