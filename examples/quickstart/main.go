// Quickstart shows Penstock at work, with nothing to install: an etcd server, a
// gin service, a gRPC service and a payment service that breaks and heals in one
// process, guarded by rules from etcd, under load over real connections. It prints what happens second by second,
// draws it, says in words what was seen, and exits with status 1 if that is not
// what the rules say.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart --serve    # keep it running, to play with
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	keep := flag.Bool("serve", false, "keep the services running instead of showing and judging 20 seconds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, out io.Writer, keep bool) error {
	fmt.Fprintln(out, "Starting an etcd server, a gin service, a gRPC service and a payment service in this process …")
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if keep {
		return serve(ctx, out, s)
	}
	fmt.Fprintf(out, "etcd at %s holds these rules:\n\n%s%s%s\n", s.etcd.Endpoint(), ordersDocument, inventoryDocument, paymentsDocument)
	record, err := show(ctx, out, s)
	if err != nil {
		return err
	}
	record.draw(out, isTerminal(out))
	wrong, untold := record.judge(out)
	fmt.Fprintf(out, "\nHow a refusal looks to an HTTP client:\n\n%s\n", record.refusal)
	if wrong > 0 {
		return fmt.Errorf("%d findings are not what the rules say", wrong)
	}
	what := "All of it is what the rules say."
	if untold > 0 {
		what = fmt.Sprintf("Nothing is against what the rules say; %d findings cannot be told, as the machine was busy.", untold)
	}
	fmt.Fprintf(out, "\n%s Run it with --serve to push rules of your own.\n", what)
	return nil
}

// isTerminal says whether a person looks on, who likes colours.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quietLogger logs errors only: the show prints for itself what happens.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
