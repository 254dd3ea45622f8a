package penstockredis_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventTimeout is how long an event may take on a machine that is very busy.
const eventTimeout = 2 * time.Minute

// newEngine returns an engine on a clock that stands still.
func newEngine(tb testing.TB, set rules.Set) *core.Engine {
	tb.Helper()
	engine, _ := adaptertest.NewEngine(tb, set)
	return engine
}

// limited is a set with one rule for a resource.
func limited(resource string, limit float64) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Name: "limit", Resource: resource, Limit: limit}}}
}

// newServer starts a server in the process.
func newServer(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	server := miniredis.NewMiniRedis()
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return server
}

// newClient returns a client that does not retry and has the hook.
func newClient(t *testing.T, addr string, engine *core.Engine, options penstockredis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(penstockredis.NewHook(engine, options))
	return client
}

func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}

// record returns a rule that records calls, and looks at an attribute of them.
func record(t *testing.T, key string) (*adaptertest.Probe, *core.Engine) {
	t.Helper()
	probe := &adaptertest.Probe{Attribute: key}
	return probe, probe.NewEngine(t)
}

// outcomes are how calls ended.
func outcomes(of ...adaptertest.Outcome) []adaptertest.Outcome { return of }

const (
	succeeded = adaptertest.Succeeded
	failed    = adaptertest.Failed
	ignored   = adaptertest.Ignored
)

// answering is a hook that stands for the server.
type answering func(ctx context.Context, cmds []redis.Cmder) error

func (a answering) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (a answering) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return a(ctx, []redis.Cmder{cmd}) }
}

func (a answering) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return redis.ProcessPipelineHook(a)
}
