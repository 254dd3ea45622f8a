package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// serve keeps the shop running under load until ctx ends, and prints a line
// each second: rules that somebody else puts into etcd show in it.
func serve(ctx context.Context, out io.Writer, s *shop) error {
	c, err := newClient(s)
	if err != nil {
		return err
	}
	defer c.close()
	fmt.Fprintf(out, `
The shop stays open until Ctrl-C, under the same load.

  orders (gin)        http://%[1]s/orders/4711
  inventory (gRPC)    %[2]s
  metrics             %[3]s
  etcd                %[4]s

Watch what passes and what is refused, in a browser at http://%[1]s/console/ or here:

  go run ./cmd/penstock top --engine %[1]s/inspect

Try other rules: fetch the documents, edit shop/orders.yaml, push them, and watch:

  go run ./cmd/penstock pull shop/ --prefix %[5]s --endpoints %[4]s
  go run ./cmd/penstock push shop/ --prefix %[5]s --endpoints %[4]s

With etcdctl, a limit for each client, of which this load is one:

  etcdctl --endpoints=%[4]s put %[5]sclients.yaml 'hotParam: [{resource: "POST:/orders", param: ip, limit: 5}]'

`, s.httpAddress, s.grpcAddress, s.metricsURL(), s.etcd.Endpoint(), prefix)

	var load sync.WaitGroup
	streams := c.streams()
	for _, stream := range streams {
		load.Go(func() { stream.run(ctx) })
	}
	defer load.Wait()
	fmt.Fprintf(out, "%8s  %18s  %18s  %18s  %18s  %s\n", "time", "GET /orders/:id", "POST /orders", "Reserve", pay, "rules")
	start, err := s.nextSecond(ctx)
	for err == nil {
		next := start.Add(time.Second)
		if err = s.sleepUntil(ctx, next); err == nil {
			printServed(out, s, streams)
		}
		start = next
	}
	return nil // ctx has ended
}

func printServed(out io.Writer, s *shop, streams []*stream) {
	fmt.Fprint(out, time.Now().Format(time.TimeOnly))
	for _, stream := range streams {
		minute := s.engine.Resource(stream.resource).Minute()
		seen := minute[len(minute)-2] // the second that is over
		fmt.Fprintf(out, "  %5d pass %4d ref", seen.Passed, seen.Blocked)
	}
	fmt.Fprintf(out, "  set %d\n", s.engine.Status().Revision)
}
