package etcdtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// limited is a document that limits a resource of its name.
func limited(name string, limit int) string {
	return fmt.Sprintf("flow: [{resource: %s, limit: %d}]", name, limit)
}

// limits returns the limits in force by resource, of one snapshot.
func limits(engine *core.Engine) map[string]float64 {
	found := map[string]float64{}
	for _, r := range engine.Snapshot().Resources {
		for _, f := range r.Rules {
			found[r.Name] = f.Quota.Limit
		}
	}
	return found
}

// Two documents that one transaction writes are on different pages of a read. Sources
// read while it is written again and again: none sees one document without the
// other.
func TestReadIsConsistentDuringWrites(t *testing.T) {
	server := start(t, etcdtest.Options{})
	others := putMany(t, server, 5000)
	first, last := "document-00000", "document-04999"
	writing, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer writer.Wait()
	defer stop()
	writer.Go(func() {
		for i := 0; writing.Err() == nil; i++ {
			_, _ = server.Client().Txn(writing).Then(
				clientv3.OpPut(prefix+first, fmt.Sprint(i)), clientv3.OpPut(prefix+last, fmt.Sprint(i))).Commit()
		}
	})
	for _, pageSize := range []int{500, 5000, 1700} {
		opts := shortBackoff()
		opts.PageSize = pageSize
		s := follow(t, newSource(t, server.Endpoint(), opts))
		require.Eventually(t, func() bool { return len(s.Changes()) >= 20 }, eventTimeout, time.Millisecond)
		changes := s.Changes()
		assert.Len(t, changes[0].Documents, len(others))
		documents := map[string]string{}
		for _, change := range changes {
			for _, d := range change.Documents {
				documents[d.Name] = string(d.Data)
			}
			if documents[first] != others[first] {
				require.Equal(t, documents[first], documents[last], "at %d", change.Revision)
			}
		}
		inOrder(t, s)
	}
}

// With a thousand writes a second the engine applies the last one in the end, and
// all in order. The queue is bounded: see
// TestQueuedChangesDuringAReadAreBounded.
func TestEngineKeepsUpWithAThousandWritesASecond(t *testing.T) {
	t.Parallel()
	const names, perSecond = 10, 1000
	seconds := 2
	if testing.Short() {
		seconds = 1
	}
	server := start(t, etcdtest.Options{})
	var mu sync.Mutex
	seen := map[string]float64{}
	swaps := 0
	var engine *core.Engine
	engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{Swapped: func(core.Swap) {
		mu.Lock()
		defer mu.Unlock()
		swaps++
		for name, limit := range limits(engine) {
			assert.GreaterOrEqual(t, limit, seen[name], "%s went back", name)
			seen[name] = limit
		}
	}}})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), newSource(t, server.Endpoint(), shortBackoff())))
	ready(t, engine)

	want := map[string]float64{}
	var writers sync.WaitGroup
	began := time.Now()
	for second := range seconds {
		for name := range names {
			resource := fmt.Sprintf("resource-%d", name)
			want[resource] = float64((second + 1) * perSecond / names)
			writers.Go(func() {
				for i := range perSecond / names {
					put(t, server, resource, limited(resource, second*perSecond/names+i+1))
				}
			})
		}
		writers.Wait()
		time.Sleep(time.Until(began.Add(time.Duration(second+1) * time.Second))) // sets the rate of writes
	}
	awaitLimits(t, engine, want)
	assert.NoError(t, engine.Status().Sources[0].Err)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d writes in %v, %d swaps", seconds*perSecond, time.Since(began), swaps)
	assert.Positive(t, swaps)
	assert.Len(t, engine.Status().Sources[0].Documents, names)
}
