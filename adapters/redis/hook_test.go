package penstockredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestCommandsAreCallsOfTheirNames(t *testing.T) {
	engine, server := newEngine(t, rules.Set{}), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "a", "1", 0).Err())
	require.NoError(t, client.Get(ctx, "a").Err())
	require.NoError(t, client.Get(ctx, "a").Err())
	require.NoError(t, client.Do(ctx, "GET", "a").Err())
	require.NoError(t, client.Do(ctx, "gEt", "a").Err())
	assert.Equal(t, []string{"redis:GET", "redis:SET"}, adaptertest.Called(engine))
	assert.EqualValues(t, 4, totals(engine, "redis:GET").Completed)
	assert.Zero(t, totals(engine, "redis:GET").InFlight)
}

func TestMadeUpCommandsShareOneResourceBeyondTheBound(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	client := newClient(t, "127.0.0.1:0", engine, penstockredis.Options{})
	client.AddHook(answering(func(context.Context, []redis.Cmder) error { return nil }))
	for i := range 2000 {
		require.NoError(t, client.Do(t.Context(), fmt.Sprint("made-up-", i)).Err())
	}
	require.NoError(t, client.Do(t.Context(), strings.Repeat("x", 65)).Err())
	require.NoError(t, client.Do(t.Context(), "").Err())
	assert.Len(t, adaptertest.Called(engine), 1001)
	assert.EqualValues(t, 1002, totals(engine, "redis:OTHER").Passed)
	assert.EqualValues(t, 1, totals(engine, "redis:MADE-UP-999").Passed)
}

func TestRefusedCommandTouchesNoNetwork(t *testing.T) {
	engine := newEngine(t, limited("redis:GET", 0))
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{}) // nobody listens
	cmd := client.Get(t.Context(), "a")
	var block *core.BlockError
	require.ErrorAs(t, cmd.Err(), &block)
	require.ErrorIs(t, cmd.Err(), core.ErrBlocked)
	assert.Equal(t, "limit", block.Rule)
	assert.Equal(t, "redis:GET", block.Resource)
	_, err := cmd.Result()
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Zero(t, client.PoolStats().Misses, "no connection was asked for")
	assert.EqualValues(t, 1, totals(engine, "redis:GET").Blocked)
}

func TestLimitHoldsExactlyUnderConcurrency(t *testing.T) {
	engine, server := newEngine(t, limited("redis:INCR", 50)), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for range 25 {
				if err := client.Incr(t.Context(), "n").Err(); err != nil {
					assert.ErrorIs(t, err, core.ErrBlocked)
				}
			}
		})
	}
	done.Wait()
	n, err := server.Get("n")
	require.NoError(t, err)
	assert.Equal(t, "50", n)
	assert.EqualValues(t, 150, totals(engine, "redis:INCR").Blocked)
}

func TestPipelineIsOneCallWithATokenForEachCommand(t *testing.T) {
	engine, server := newEngine(t, limited("redis:PIPELINE", 5)), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	fill := func(n int) ([]redis.Cmder, error) {
		return client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for range n {
				pipe.Incr(t.Context(), "n")
			}
			return nil
		})
	}
	_, err := fill(4)
	require.NoError(t, err)
	cmds, err := fill(2)
	require.ErrorIs(t, err, core.ErrBlocked)
	require.Len(t, cmds, 2)
	for _, cmd := range cmds {
		var block *core.BlockError
		require.ErrorAs(t, cmd.Err(), &block)
	}
	_, err = fill(1)
	require.NoError(t, err, "a token was left")
	n, err := server.Get("n")
	require.NoError(t, err)
	assert.Equal(t, "5", n)
	assert.EqualValues(t, 2, totals(engine, "redis:PIPELINE").Passed)
	assert.Equal(t, []string{"redis:PIPELINE"}, adaptertest.Called(engine), "its commands are no calls")
}

func TestTransactionIsOneCallWithoutMultiAndExec(t *testing.T) {
	seen, engine := record(t, "command")
	client := newClient(t, newServer(t).Addr(), engine, penstockredis.Options{})
	_, err := client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Incr(t.Context(), "n")
		pipe.Incr(t.Context(), "n")
		pipe.BLPop(t.Context(), time.Second, "none") // waits for nothing in a transaction
		return nil
	})
	require.ErrorIs(t, err, redis.Nil)
	assert.Equal(t, []string{"redis:MULTI"}, adaptertest.Called(engine))
	assert.EqualValues(t, 3, seen.LastCall().Tokens)
	command, _ := seen.LastCall().Attribute.Text()
	assert.Equal(t, "MULTI", command)
	assert.Equal(t, outcomes(succeeded), seen.Outcomes())
}

func TestRefusedTransactionGivesItsWatchBack(t *testing.T) {
	everything := rules.Set{Isolation: []isolation.Rule{{Name: "closed", Resource: "redis:MULTI", Limit: 0}}}
	engine, server := newEngine(t, everything), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	err := client.Watch(t.Context(), func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			return pipe.Set(t.Context(), "a", "1", 0).Err()
		})
		return err
	}, "a")
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.False(t, server.Exists("a"))
	assert.Equal(t, []string{"redis:MULTI", "redis:WATCH"}, adaptertest.Called(engine), "UNWATCH is no call")
}

func TestConnectionsAreSetUpWithinTheCallThatNeedsThem(t *testing.T) {
	one := rules.Set{Isolation: []isolation.Rule{{Name: "one", Match: "redis:*", Shared: true, Limit: 1}}}
	engine, server := newEngine(t, one), newServer(t)
	server.RequireAuth("secret")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "secret", DB: 3, ClientName: "test"})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(penstockredis.NewHook(engine, penstockredis.Options{}))
	require.NoError(t, client.Set(t.Context(), "a", "1", 0).Err())
	assert.Equal(t, []string{"redis:SET"}, adaptertest.Called(engine))
}

func TestCommandsOfConnectionsAlwaysPass(t *testing.T) {
	closed := rules.Set{Isolation: []isolation.Rule{{Name: "closed", Match: "*", Limit: 0}}}
	engine, server := newEngine(t, closed), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{
		Resource: func(context.Context, redis.Cmder) string { return "all" },
	})
	require.NoError(t, client.Do(t.Context(), "SELECT", 1).Err())
	require.NoError(t, client.Do(t.Context(), "UNWATCH").Err())
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Select(t.Context(), 0).Err() })
	require.NoError(t, err)
	require.ErrorIs(t, client.Ping(t.Context()).Err(), core.ErrBlocked)
}

func TestPubSubIsNotGuardedButPublishIs(t *testing.T) {
	engine, server := newEngine(t, limited("redis:PUBLISH", 1)), newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	sub := client.Subscribe(t.Context(), "news")
	defer func() { require.NoError(t, sub.Close()) }()
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Publish(t.Context(), "news", "first").Err())
	require.ErrorIs(t, client.Publish(t.Context(), "news", "second").Err(), core.ErrBlocked)
	message, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "first", message.Payload)
	assert.Equal(t, []string{"redis:PUBLISH"}, adaptertest.Called(engine))
}

func TestOptionsChooseResourcesTokensAndAttributes(t *testing.T) {
	seen, engine := record(t, "tenant")
	client := newClient(t, newServer(t).Addr(), engine, penstockredis.Options{
		Resource: func(_ context.Context, cmd redis.Cmder) string {
			if cmd.Name() == "ping" {
				return ""
			}
			return "cache"
		},
		Pipeline: func(_ context.Context, cmds []redis.Cmder) string {
			if len(cmds) == 1 {
				return ""
			}
			return "batch"
		},
		Tokens: func(_ context.Context, cmd redis.Cmder) int { return len(cmd.Args()) },
		Attributes: func(_ context.Context, cmds []redis.Cmder) []core.Option {
			return []core.Option{core.Int("tenant", int64(len(cmds)))}
		},
	})
	ctx := core.ContextWithPriority(t.Context(), rule.PriorityHigh)
	require.NoError(t, client.Ping(ctx).Err())
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Ping(ctx).Err() })
	require.NoError(t, err)
	assert.Empty(t, adaptertest.Called(engine), "not guarded")

	require.NoError(t, client.Set(ctx, "a", "1", 0).Err())
	assert.EqualValues(t, 3, seen.LastCall().Tokens)
	assert.Equal(t, rule.PriorityHigh, seen.LastCall().Priority())
	n, _ := seen.LastCall().Attribute.Number()
	assert.EqualValues(t, 1, n)

	_, err = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Get(ctx, "a")
		return pipe.Set(ctx, "a", "1", 0).Err()
	})
	require.NoError(t, err)
	assert.EqualValues(t, 5, seen.LastCall().Tokens)
	n, _ = seen.LastCall().Attribute.Number()
	assert.EqualValues(t, 2, n)
	assert.Equal(t, []string{"batch", "cache"}, adaptertest.Called(engine))
}

func TestTokensThatMakeNoSenseAreAnError(t *testing.T) {
	engine := newEngine(t, rules.Set{})
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{
		Tokens: func(_ context.Context, cmd redis.Cmder) int { return len(cmd.Args()) - 2 },
	})
	require.ErrorIs(t, client.Get(t.Context(), "a").Err(), core.ErrInvalid)
	cmds, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.MGet(t.Context(), "a", "b", "c", "d")
		return pipe.Get(t.Context(), "a").Err()
	})
	require.ErrorIs(t, err, core.ErrInvalid)
	require.ErrorIs(t, cmds[0].Err(), core.ErrInvalid)
}

func TestKeysAreAttributes(t *testing.T) {
	seen, engine := record(t, "key")
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
	client.AddHook(answering(func(context.Context, []redis.Cmder) error { return nil }))
	for _, test := range []struct {
		command []any
		key     string // "" for none
	}{
		{[]any{"GET", "k"}, "k"},
		{[]any{"get", []byte("k")}, "k"},
		{[]any{"incr", 7}, "7"},
		{[]any{"incr", int64(7)}, "7"},
		{[]any{"ping"}, ""},
		{[]any{"get"}, ""},
		{[]any{"publish", "channel", "x"}, ""},
		{[]any{"eval", "return 1", 0, "x"}, ""},
		{[]any{"eval", "return 1"}, ""},
		{[]any{"evalsha", "abc", 2, "k", "l"}, "k"},
		{[]any{"xread", "count", 2, "streams", "k", "0"}, "k"},
		{[]any{"xread", "count", 2}, ""},
		{[]any{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"}, "k"},
		{[]any{"zunion", 1, "k"}, "k"},
		{[]any{"object", "encoding", "k"}, "k"},
		{[]any{"migrate", "host", 1, "k"}, "k"},
		{[]any{"json.get", "k"}, "k"},
	} {
		require.NoError(t, client.Do(t.Context(), test.command...).Err())
		key, _ := seen.LastCall().Attribute.Text()
		assert.Equal(t, test.key, key, test.command)
		assert.Equal(t, test.key != "", seen.LastCall().Attribute.IsSet(), test.command)
	}
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "k").Err() })
	require.NoError(t, err)
	assert.False(t, seen.LastCall().Attribute.IsSet(), "a pipeline has many")
}

func TestPanicCountsAsAFailureAndGoesOn(t *testing.T) {
	seen, engine := record(t, "command")
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
	client.AddHook(answering(func(context.Context, []redis.Cmder) error { panic("broken") }))
	assert.PanicsWithValue(t, "broken", func() { client.Get(t.Context(), "a") })
	assert.PanicsWithValue(t, "broken", func() {
		_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
	})
	assert.Equal(t, outcomes(failed, failed), seen.Outcomes())
}

func TestWaitThatIsCancelledIsTheErrorOfTheCommand(t *testing.T) {
	one := rules.Set{Isolation: []isolation.Rule{{Name: "one", Resource: "redis:GET", Limit: 1, MaxWait: time.Hour}}}
	engine := newEngine(t, one)
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
	under, release := make(chan struct{}), make(chan struct{})
	client.AddHook(answering(func(context.Context, []redis.Cmder) error { close(under); <-release; return nil }))
	first := make(chan error)
	go func() { first <- client.Get(t.Context(), "a").Err() }()
	<-under
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.ErrorIs(t, client.Get(ctx, "a").Err(), context.Canceled)
	close(release)
	require.NoError(t, <-first)
}
