// Serve shows decisions for proxies. A server of Envoy's rate limit service in this process is
// asked as Envoy does. Then three servers of its quota service, in processes of their own, divide a
// limit of their fleet among fifty data planes, while demand moves and one of the servers is
// killed. What passes is counted at the data planes.
//
//	go run ./examples/serve
//
// It ends after half a minute. The servers share the limit through redis-server or valkey-server,
// if one is on the PATH, else through a stand-in in this process.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := program(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// program is the show, or one of the servers in it.
func program(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 3 && args[0] == roleReplica {
		return replica(ctx, args[1], args[2], out)
	}
	return run(ctx, out, time.Second)
}

// run shows both services. A unit of the second show is a second, less in tests.
func run(ctx context.Context, out io.Writer, unit time.Duration) error {
	fmt.Fprintln(out, "The rate limit service: ten for all, three for each user.")
	if err := showRequests(ctx, out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return showQuotas(ctx, out, unit)
}
