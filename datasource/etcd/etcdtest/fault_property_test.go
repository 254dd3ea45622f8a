package etcdtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// faultDuration is how long faults are injected: for ten minutes if PENSTOCK_LONG is set, as make long
// does.
func faultDuration(t *testing.T) time.Duration {
	t.Helper()
	if os.Getenv("PENSTOCK_LONG") != "" {
		return 10 * time.Minute
	}
	if testing.Short() {
		return 2 * time.Second
	}
	return 5 * time.Second
}

// Random faults are injected into the documents, etcd and the network. The engine
// only ever enforces states that etcd has had, complete and in order, and after the
// faults it enforces the present one.
func TestRulesMatchEtcdAfterAnyFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, etcdtest.Options{Dir: dir})
	network := newProxy(t, server)
	end := time.Now().Add(faultDuration(t))
	rounds, failed := 0, false
	var slowest time.Duration
	rapid.Check(t, func(t *rapid.T) {
		if time.Now().After(end) && !failed {
			return
		}
		rounds++
		w := newFaultModel(t, server, network, dir, etcd.Prefix(fmt.Sprintf("shop-%d", rounds)))
		defer w.engine.Close()
		failed = true
		t.Repeat(map[string]func(*rapid.T){
			"write":   w.write,
			"burst":   w.burst,
			"compact": w.compact,
			"stop": func(t *rapid.T) {
				w.requireServer(t)
				server.Stop()
			},
			"start":   w.start,
			"restart": w.restart,
			"wipe":    w.wipe,
			"network": func(t *rapid.T) {
				rapid.SampledFrom([]func(){
					network.Cut, network.Stall, network.Restore,
					func() { network.Slow(time.Millisecond) }, func() { network.ResetAfter(200) },
				}).Draw(t, "state")()
			},
			"pass": func(t *rapid.T) {
				time.Sleep(time.Duration(rapid.IntRange(0, 20).Draw(t, "milliseconds")) * time.Millisecond)
			},
			"recover": func(t *rapid.T) { slowest = max(slowest, w.recoverAndCheck(t)) },
		})
		slowest = max(slowest, w.recoverAndCheck(t))
		failed = false
	})
	t.Logf("%d rounds, healed within %v", rounds, slowest)
}

// faultModel is an etcd server, an engine that follows it, and a model of both.
type faultModel struct {
	server  *etcdtest.Server
	network *proxy
	dir     string // of the server
	prefix  string

	version   int                 // counts the documents written
	documents map[string]string   // documents in etcd
	states    []map[string]string // states that etcd has had, in order

	engine *core.Engine
	source *recorded
	swaps  []map[string]float64 // limits after each swap; Swapped is called before Apply returns
}

func newFaultModel(t *rapid.T, server *etcdtest.Server, network *proxy, dir, prefix string) *faultModel {
	client, err := etcd.Open(clientv3.Config{Endpoints: []string{network.endpoint()}}, prefix, shortTimeouts())
	require.NoError(t, err)
	w := &faultModel{
		server: server, network: network, dir: dir, prefix: prefix, source: &recorded{Source: client},
		documents: map[string]string{}, states: []map[string]string{{}},
	}
	w.engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Observer: core.Observer{
		Swapped: func(core.Swap) { w.source.note(func() { w.swaps = append(w.swaps, limits(w.engine)) }) },
	}})
	w.start(t)
	require.NoError(t, w.engine.Follow(context.Background(), w.source))
	return w
}

// requireServer skips the step if the server is down.
func (w *faultModel) requireServer(t *rapid.T) {
	if w.server.Client() == nil {
		t.Skip("the server is down")
	}
}

func (w *faultModel) start(t *rapid.T) {
	if w.server.Client() == nil {
		require.NoError(t, w.server.Restart())
	}
}

func (w *faultModel) restart(t *rapid.T) { require.NoError(t, w.server.Restart()) }

// wipe restarts the cluster without data.
func (w *faultModel) wipe(t *rapid.T) {
	w.server.Stop()
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "member")))
	require.NoError(t, w.server.Restart())
	w.documents = map[string]string{}
	w.states = append(w.states, w.documents)
}

func (w *faultModel) compact(t *rapid.T) {
	w.requireServer(t)
	status, err := w.server.Client().Get(context.Background(), "/")
	require.NoError(t, err)
	_, _ = w.server.Client().Compact(context.Background(), status.Header.Revision) // an error if it is compacted already
}

// write changes some documents in one transaction.
func (w *faultModel) write(t *rapid.T) {
	w.requireServer(t)
	next := maps.Clone(w.documents)
	var ops []clientv3.Op
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID).Draw(t, "names") {
		w.version++
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 2:
			delete(next, name)
			ops = append(ops, clientv3.OpDelete(w.prefix+name))
			continue
		case kind < 4:
			next[name] = fmt.Sprintf("flow: [{resource: %s, limit: %d, unknown: field}]", name, w.version)
		default:
			next[name] = limited(name, w.version)
		}
		ops = append(ops, clientv3.OpPut(w.prefix+name, next[name]))
	}
	_, err := w.server.Client().Txn(context.Background()).Then(ops...).Commit()
	require.NoError(t, err)
	w.documents = next
	w.states = append(w.states, next)
}

func (w *faultModel) burst(t *rapid.T) {
	for range 20 {
		w.write(t)
	}
}

// recoverAndCheck ends all faults, waits until the engine enforces the documents in etcd,
// checks the states in between, and returns how long it took.
func (w *faultModel) recoverAndCheck(t *rapid.T) time.Duration {
	w.start(t)
	w.network.Restore()
	began := time.Now()
	w.await(t) // without a further write
	took := time.Since(began)
	// The engine may have been in the same state before, with later changes still
	// to be applied. The state written now is new.
	w.put(t, "healed")
	w.await(t)

	changes := w.source.applied()
	held, inForce, at := map[string]string{}, map[string]float64{}, 0
	want := []map[string]float64{inForce}
	for _, change := range changes {
		held = applied(held, change)
		was := slices.IndexFunc(w.states[at:], func(past map[string]string) bool { return maps.Equal(past, held) })
		require.GreaterOrEqual(t, was, 0, "%v was not held after %v", held, w.states[:at+1])
		at += was
		inForce = enforced(inForce, held)
		want = append(want, inForce)
	}
	require.Equal(t, want[len(want)-1], limits(w.engine))
	var had []map[string]float64
	w.source.note(func() { had = slices.Clone(w.swaps) })
	require.Equal(t, distinct(want), distinct(append([]map[string]float64{{}}, had...)))
	return took
}

// await waits until the source has delivered the present documents.
func (w *faultModel) await(t *rapid.T) {
	require.Eventually(t, func() bool {
		return maps.Equal(w.source.documents(), w.documents) && w.engine.Status().Sources[0].Connected
	},
		eventTimeout, time.Millisecond)
}

// put writes a new version of a document.
func (w *faultModel) put(t *rapid.T, name string) {
	w.version++
	next := maps.Clone(w.documents)
	next[name] = limited(name, w.version)
	_, err := w.server.Client().Put(context.Background(), w.prefix+name, next[name])
	require.NoError(t, err)
	w.documents = next
	w.states = append(w.states, next)
}

// applied returns the documents after a change.
func applied(documents map[string]string, change core.Change) map[string]string {
	after := map[string]string{}
	if !change.Complete {
		after = maps.Clone(documents)
	}
	for _, d := range change.Documents {
		after[d.Name] = string(d.Data)
	}
	for _, name := range change.Removed {
		delete(after, name)
	}
	return after
}

// enforced returns the limits in force after documents have changed. A broken
// document keeps its last limit.
func enforced(before map[string]float64, documents map[string]string) map[string]float64 {
	after := map[string]float64{}
	for name, text := range documents {
		var limit float64
		if n, _ := fmt.Sscanf(text, "flow: [{resource: "+name+", limit: %f}]", &limit); n == 1 && text == limited(name, int(limit)) {
			after[name] = limit
		} else if last, there := before[name]; there {
			after[name] = last
		}
	}
	return after
}

// distinct returns the states without consecutive duplicates.
func distinct(states []map[string]float64) []map[string]float64 {
	return slices.CompactFunc(slices.Clone(states), maps.Equal)
}

// recorded is a source that records what it delivers.
type recorded struct {
	core.Source

	mu      sync.Mutex // guards the fields below and what note changes
	changes []core.Change
	current map[string]string
}

func (r *recorded) Run(ctx context.Context, sink core.Sink) error {
	return r.Source.Run(ctx, recorder{sink, r})
}

func (r *recorded) note(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

func (r *recorded) applied() (changes []core.Change) {
	r.note(func() { changes = slices.Clone(r.changes) })
	return changes
}

func (r *recorded) documents() (held map[string]string) {
	r.note(func() { held = maps.Clone(r.current) })
	return held
}

// recorder is the sink of a recorded source.
type recorder struct {
	core.Sink
	*recorded
}

func (r recorder) Apply(change core.Change) {
	r.Sink.Apply(change)
	r.note(func() { r.changes, r.current = append(r.changes, change), applied(r.current, change) })
}
