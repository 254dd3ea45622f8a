package etcdtest_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// newLimitedEngine returns an engine that follows four documents and allows half of its rules
// to be removed at once.
func newLimitedEngine(t *testing.T, server *etcdtest.Server, opts etcd.Options) *core.Engine {
	t.Helper()
	for i := range 4 {
		put(t, server, fmt.Sprint("document", i), fmt.Sprintf("flow: [{resource: r%d, limit: 1}]", i))
	}
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), MaxRemoval: 0.5})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Follow(t.Context(), newSource(t, server.Endpoint(), opts)))
	ready(t, engine)
	require.Equal(t, 4, engine.Status().Rules)
	return engine
}

func awaitRules(t *testing.T, engine *core.Engine, want int) {
	t.Helper()
	require.Eventually(t, func() bool { return engine.Status().Rules == want }, eventTimeout, time.Millisecond)
}

func awaitHeldBack(t *testing.T, engine *core.Engine) {
	t.Helper()
	require.Eventually(t, func() bool { return engine.Status().Sources[0].HeldBack != nil }, eventTimeout, time.Millisecond)
	require.Equal(t, 4, engine.Status().Rules)
}

func TestEmptiedPrefixIsHeldBackUntilConfirmed(t *testing.T) {
	t.Parallel()
	server := start(t, etcdtest.Options{})
	opts := shortBackoff()
	opts.Instance = "one"
	engine := newLimitedEngine(t, server, opts)
	rules := newStore(t, server)

	commit(t, server, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	awaitHeldBack(t, engine)
	require.Eventually(t, func() bool {
		reports, err := rules.Instances(t.Context())
		return err == nil && len(reports) == 1 && reports[0].HeldBack != "" && len(reports[0].Rejected) == 0
	}, eventTimeout, 10*time.Millisecond)

	key, _ := etcd.Keys{Documents: prefix}.Confirmation("")
	commit(t, server, clientv3.OpPut(key, "something else"))
	awaitHeldBack(t, engine)

	revision, err := rules.Confirm(t.Context(), "somebody")
	require.NoError(t, err)
	awaitRules(t, engine, 0)
	assert.Equal(t, revision, engine.Status().Sources[0].Revision)
	assert.Empty(t, engine.Status().Sources[0].Documents, "a confirmation is no document")

	assert.Empty(t, pull(t, rules).Documents)
}

func TestConfirmedPushIsNotHeldBack(t *testing.T) {
	server := start(t, etcdtest.Options{})
	engine := newLimitedEngine(t, server, shortBackoff())
	rules := newStore(t, server)
	contents := pull(t, rules)
	push := store.Push{Expect: contents.Revision, Documents: contents.Documents[:1], ConfirmRemovals: true}
	done, err := rules.Push(t.Context(), push)
	require.NoError(t, err)
	awaitRules(t, engine, 1)

	push = store.Push{Expect: done.Revision, Documents: nil}
	_, err = rules.Push(t.Context(), push)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return engine.Status().Sources[0].HeldBack != nil }, eventTimeout, time.Millisecond)
	assert.Equal(t, 1, engine.Status().Rules)
}

// An empty cluster, with lower revisions, does not remove the rules.
func TestEmptyReplacementClusterIsHeldBack(t *testing.T) {
	server := start(t, etcdtest.Options{})
	engine := newLimitedEngine(t, server, shortBackoff())
	server.Stop()
	require.NoError(t, server.Restart())
	awaitHeldBack(t, engine)

	revision, err := newStore(t, server).Confirm(t.Context(), "somebody")
	require.NoError(t, err)
	require.Less(t, revision, int64(4), "of another history")
	awaitRules(t, engine, 0)
}
