// Command release keeps the modules of this repository releasable, and prepares their
// releases. It finds the modules itself: a new one needs no change here.
//
//	go run ./tools/release set [-n] [v0.3.0]  # the version that modules require of each other
//	go run ./tools/release tidy [-diff]       # go mod tidy in all modules; or what it would change
//	go run ./tools/release tags [-n]          # checks a release, prints its tags and what to do
//	go run ./tools/release proxy FOLDER       # a module proxy with the modules as they are here
//	go run ./tools/release oldest [FOLDER …]  # tests modules with the oldest versions they allow
//
// All modules are released together, with one version, which the file VERSION has. They
// require each other with it and have no replace directives. In go.work, which serves
// development, that version of each module is replaced with its folder.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, ".", os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New(`the command is one of
  set [-n] [VERSION]    puts the version, by default that of the file VERSION, into all modules
  tidy [-diff]          runs go mod tidy in all modules
  tags [-n]             checks a release, prints its tags and what to do
  proxy [-version VERSION] FOLDER
                        writes a module proxy into a folder
  oldest [-run REGEXP] [FOLDER …]
                        tests modules with the oldest versions they allow`)

// run executes one command in the repository that contains dir.
func run(ctx context.Context, out io.Writer, dir string, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	dry := flags.Bool("n", false, "")
	diff := flags.Bool("diff", false, "")
	version := flags.String("version", "", "")
	only := flags.String("run", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	repo, err := open(dir)
	if err != nil {
		return err
	}
	count := flags.NArg()
	switch command := args[0]; {
	case command == "set" && count <= 1:
		return repo.set(ctx, out, cmp.Or(flags.Arg(0), repo.version), *dry)
	case command == "tidy" && count == 0:
		return repo.tidy(ctx, out, *diff)
	case command == "tags" && count == 0:
		return repo.tags(ctx, out, *dry)
	case command == "proxy" && count == 1:
		return repo.proxy(flags.Arg(0), cmp.Or(*version, repo.version))
	case command == "oldest":
		return repo.oldest(ctx, out, *only, flags.Args())
	}
	return errUsage
}
