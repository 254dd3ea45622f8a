package etcdtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
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

// limits returns the limits in force by resource, all as of one moment.
func limits(engine *core.Engine) map[string]float64 {
	found := map[string]float64{}
	for _, r := range engine.Snapshot().Resources {
		for _, f := range r.Flow {
			found[r.Name] = f.Rule.Limit
		}
	}
	return found
}

// Two documents that one transaction writes lie on different pages of a read. Readers
// come while it is written again and again: none sees one document without the
// other.
func TestReadOfManyDocumentsIsOfOneMomentWhateverIsWritten(t *testing.T) {
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
		opts := eager()
		opts.PageSize = pageSize
		s := follow(t, newSource(t, server.Endpoint(), opts))
		require.Eventually(t, func() bool { return len(s.applied()) >= 20 }, patience, time.Millisecond)
		changes := s.applied()
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
		s.inOrder(t)
	}
}

// A thousand writes a second: the engine ends at what was written last, what
// it goes through is in order, and nothing piles up.
func TestEngineKeepsUpWithAStorm(t *testing.T) {
	t.Parallel()
	const names, perSecond = 10, 1000
	seconds := 10
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
	require.NoError(t, engine.Follow(t.Context(), newSource(t, server.Endpoint(), eager())))
	ready(t, engine)

	want := map[string]float64{}
	var writers sync.WaitGroup
	var memory []int64
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
		time.Sleep(time.Until(began.Add(time.Duration(second+1) * time.Second))) // the rate, not a wait for anything
		memory = append(memory, inUse())
	}
	awaitLimits(t, engine, want)
	assert.NoError(t, engine.Status().Sources[0].Err)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d writes in %v, %d swaps, memory %d KiB", seconds*perSecond, time.Since(began), swaps, memory)
	assert.Positive(t, swaps)
	assert.Positive(t, slices.Max(memory), "samples see the engine")
	assert.Less(t, slices.Max(memory), int64(1<<10), "KiB")
}

// inUse returns what the engine and the source hold in memory, in KiB, as far as
// samples tell. The server in the same process does not count.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what a profile tells is as of the collection before
	records := make([]runtime.MemProfileRecord, 50_000)
	n, ok := runtime.MemProfile(records, false)
	if !ok {
		return -1
	}
	var bytes int64
	for _, record := range records[:n] {
		if ours(record.Stack()) {
			bytes += record.InUseBytes()
		}
	}
	return bytes >> 10
}

func ours(stack []uintptr) bool {
	for frames := runtime.CallersFrames(stack); ; {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "penstock") && !strings.Contains(frame.Function, "etcdtest") {
			return true
		}
		if !more {
			return false
		}
	}
}
