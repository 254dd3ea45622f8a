// Command penstock tests rules, publishes them to etcd, shows which instances run them,
// and decides by them for proxies: see penstock --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// grace is how long a command may take to end after a signal.
const grace = 2 * time.Second

func main() {
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
	}
	env.ExtendGrace = func(by time.Duration) { extended.Store(int64(by)) }
	env.Width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 without a terminal
	os.Exit(command.Run(ctx, env, os.Args[1:]))
}
