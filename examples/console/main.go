// Console shows the web page for operators at work, with nothing to install: an etcd server, three
// instances of a shop whose load changes, a payment service that breaks and heals, and the console, in one
// process. Open the address that it prints, change a rule, and see what it does.
//
//	go run ./examples/console
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/penstock-go/penstock/console"
)

func main() {
	address := flag.String("listen", "127.0.0.1:7070", "where the console listens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *address); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, out io.Writer, address string) error {
	fmt.Fprintln(out, "Starting an etcd server and three instances of a shop in this process …")
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.console(), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	fmt.Fprintf(out, `
  console   http://%s/
  etcd      %s, documents below %s

The load goes up and down within a minute, and every 40 seconds payments fail for a while. Everybody who
reaches this console may change rules: it listens on this machine only. Ctrl-C ends it.
`, listener.Addr(), s.etcd.Endpoint(), prefix)
	go s.load(ctx)
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// console returns the page for all instances. Whoever reaches it may change rules: a real one would ask
// who they are.
func (s *shop) console() http.Handler {
	return console.Handler(console.Options{
		App: "shop", Store: s.store,
		Authorize: func(*http.Request) (console.Identity, console.Role) { return "you", console.Editor },
	})
}

// quietLogger logs errors only: the console shows the rest.
func quietLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
