package lastgood_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

// etcd stands for a source that may be down.
type etcd struct{ away bool }

func (etcd) Name() string { return "etcd:/penstock/shop/" }

func (s etcd) Run(ctx context.Context, sink core.Sink) error {
	if s.away {
		sink.Disconnected(errors.New("connection refused"))
	} else {
		sink.Apply(core.Change{Complete: true, Revision: 42, Documents: []core.Document{
			{Name: "orders.yaml", Revision: 42, Data: []byte("flow: [{resource: orders, limit: 0}]")},
		}})
	}
	<-ctx.Done()
	return ctx.Err()
}

// A service starts while etcd can be read, and again while it cannot.
func Example() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	for _, away := range []bool{false, true} {
		source, err := lastgood.Keep(etcd{away}, lastgood.Options{
			Path:   filepath.Join(dir, "rules.copy"),
			App:    "shop",
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			panic(err)
		}
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
		ctx := context.Background()
		if err := engine.Follow(ctx, source); err != nil {
			panic(err)
		}
		if err := engine.Ready(ctx); err != nil {
			panic(err)
		}
		_, err = engine.Entry(ctx, "orders")
		status := engine.Status().Sources[0]
		fmt.Printf("connected: %v, on a copy: %v, blocked: %v\n",
			status.Connected, status.CopiedAt != 0, errors.Is(err, core.ErrBlocked))
		engine.Close()
	}
	// Output:
	// connected: true, on a copy: false, blocked: true
	// connected: false, on a copy: true, blocked: true
}
