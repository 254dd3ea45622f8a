package etcdtest_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// The engine, the client and the context of Follow end in any order, at any time,
// some of them twice, while documents are written and the network fails. TestMain
// checks that no goroutine is left.
func TestClosingInAnyOrderLeaksNothing(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	network := newProxy(t, server)
	put(t, server, "orders.yaml", closed)
	writing, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() {
		for writing.Err() == nil {
			_, _ = server.Client().Put(writing, prefix+"orders.yaml", closed)
		}
	})
	for round := range 60 {
		switch round % 6 {
		case 3:
			network.Cut()
		case 4:
			network.Stall()
		case 5:
			network.Restore()
		}
		client := dial(t, network.endpoint())
		opts := shortTimeouts()
		if round%2 == 0 {
			opts.Instance = "shop-1"
		}
		inner, err := etcd.New(client, prefix, opts)
		require.NoError(t, err)
		source := &ending{Source: inner, ended: make(chan error, 1)}
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, engine.Follow(ctx, source))

		var closing sync.WaitGroup
		for _, do := range []func(){engine.Close, engine.Close, cancel, func() { _ = client.Close() }, func() { _ = client.Close() }} {
			moment := rand.N(20 * time.Millisecond)
			closing.Go(func() {
				time.Sleep(moment)
				do()
			})
		}
		select {
		case err := <-source.ended:
			assert.True(t, is(context.Canceled)(err) || is(etcd.ErrClientClosed)(err), "%v", err)
		case <-time.After(eventTimeout):
			require.Fail(t, "Run hangs")
		}
		closing.Wait()
		require.ErrorIs(t, engine.Follow(ctx, source), core.ErrClosed)
	}
	network.Restore()
}

// ending is a source that signals when its run has ended.
type ending struct {
	core.Source
	ended chan error
}

func (e *ending) Run(ctx context.Context, sink core.Sink) error {
	err := e.Source.Run(ctx, sink)
	e.ended <- err
	return err
}

func TestClosingTheEngineEndsTheRunOfASourceWithItsOwnClient(t *testing.T) {
	server := start(t, etcdtest.Options{})
	for range 20 {
		source := &ending{Source: open(t, reporting("shop-1"), server.Endpoint()), ended: make(chan error, 1)}
		engine := newEngineOf(t, source)
		time.Sleep(rand.N(5 * time.Millisecond)) // any time
		engine.Close()
		require.Len(t, source.ended, 1, "Close waits for the run")
		require.ErrorIs(t, <-source.ended, context.Canceled)
		engine.Close()
	}
}
