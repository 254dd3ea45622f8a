// Command penstock proves rules before they ship, ships them and shows what
// became of them: see penstock --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := command.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		InIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	env.Width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 when it is none
	code := command.Run(ctx, env, os.Args[1:])
	stop()
	os.Exit(code)
}
