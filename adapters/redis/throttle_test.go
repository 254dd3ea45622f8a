package penstockredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestAnswersSayWhetherTheServerTurnsCommandsAway(t *testing.T) {
	for err, want := range map[error]outgoing.Result{
		nil:       outgoing.Accepted,
		redis.Nil: outgoing.Accepted,
		reply("WRONGTYPE Operation against a key holding the wrong kind of value"): outgoing.Accepted,
		reply("READONLY You can't write against a read only replica."):             outgoing.Accepted,
		reply("MISCONF Redis is configured to save RDB snapshots"):                 outgoing.Accepted,
		reply("BUSYGROUP Consumer Group name already exists"):                      outgoing.Accepted,
		reply("EXECABORT Transaction discarded because of previous errors."):       outgoing.Accepted,
		reply("LOADING Redis is loading the dataset in memory"):                    outgoing.Rejected,
		busy: outgoing.Rejected,
		reply("OOM command not allowed when used memory > 'maxmemory'."):             outgoing.Rejected,
		reply("EXECABORT Transaction discarded because of: OOM command not allowed"): outgoing.Rejected,
		reply("ERR LOADING of a proxy"):                                              outgoing.Rejected,
		reply("MASTERDOWN Link with MASTER is down"):                                 outgoing.Rejected,
		reply("CLUSTERDOWN The cluster is down"):                                     outgoing.Rejected,
		reply("ERR max number of clients reached"):                                   outgoing.Rejected,
		io.EOF:                   outgoing.Rejected,
		os.ErrDeadlineExceeded:   outgoing.Rejected,
		context.DeadlineExceeded: outgoing.Rejected,
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}: outgoing.Rejected,
		context.Canceled: outgoing.Ignored,
		redis.ErrClosed:  outgoing.Ignored,
		errors.New("redis: connection pool timeout"):                                  outgoing.Ignored,
		errors.New("redis: can't marshal struct {}"):                                  outgoing.Ignored,
		&core.BlockError{Kind: rule.Kind("other")}:                                    outgoing.Ignored,
		fmt.Errorf("further down: %w", &core.BlockError{Kind: rule.Kind("outgoing")}): outgoing.Ignored,
	} {
		assert.Equal(t, outgoing.Answer{Result: want}, penstockredis.Answer(err), "%v", err)
	}
}

// throttled is a client with a throttle and a server that is a function.
type throttled struct {
	*redis.Client
	throttle *outgoing.Throttle
}

func newThrottled(
	t *testing.T, set rules.Set, options penstockredis.Options, server func(ctx context.Context, cmds []redis.Cmder) error,
) throttled {
	t.Helper()
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: clock.NewVirtual(time.Unix(1e9, 0)), Seed: 1})
	require.NoError(t, err)
	options.Throttle = throttle
	client := newClient(t, "127.0.0.1:1", newEngine(t, set), options)
	client.AddHook(answering(server))
	return throttled{client, throttle}
}

// counted returns how many answers accepted and rejected commands of a target.
func (c throttled) counted(target string) (accepted, rejected uint64) {
	for _, of := range c.throttle.Stats().Targets {
		if of.Target == target {
			return of.Accepted, of.Rejected
		}
	}
	return 0, 0
}

// closed is a set that refuses all calls.
func closed() rules.Set {
	return rules.Set{Isolation: []isolation.Rule{{Name: "closed", Match: "*", Limit: 0}}}
}

func rejecting(context.Context, []redis.Cmder) error { return busy }

func TestPipelineIsRejectedIfOneOfItsCommandsIs(t *testing.T) {
	client := newThrottled(t, rules.Set{}, penstockredis.Options{}, func(_ context.Context, cmds []redis.Cmder) error {
		var first error
		for _, cmd := range cmds {
			if cmd.Name() == "set" {
				first = reply("OOM command not allowed")
				cmd.SetErr(first)
			}
		}
		return first
	})
	for _, names := range [][]string{{"get", "set", "get"}, {"set", "get"}, {"get", "get"}} {
		_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for _, name := range names {
				pipe.Do(t.Context(), name, "a")
			}
			return nil
		})
	}
	accepted, rejected := client.counted("redis")
	assert.EqualValues(t, 1, accepted)
	assert.EqualValues(t, 2, rejected)
}

func TestPipelineWithoutAConnectionIsRejected(t *testing.T) {
	client := newThrottled(t, rules.Set{}, penstockredis.Options{}, func(context.Context, []redis.Cmder) error { return io.EOF })
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
	require.Error(t, err)
	_, rejected := client.counted("redis")
	assert.EqualValues(t, 1, rejected)
}

func TestCommandsThatWaitSayNothingWithoutAnAnswer(t *testing.T) {
	err := os.ErrDeadlineExceeded
	client := newThrottled(t, rules.Set{}, penstockredis.Options{}, func(context.Context, []redis.Cmder) error { return err })
	wait := func() {
		_ = client.BLPop(t.Context(), time.Second, "a").Err()
		_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			return pipe.BLPop(t.Context(), time.Second, "a").Err()
		})
	}
	wait()
	accepted, rejected := client.counted("redis")
	assert.Zero(t, accepted+rejected)
	err = busy
	wait()
	_, rejected = client.counted("redis")
	assert.EqualValues(t, 2, rejected)
}

func TestCommandsThatARuleRefusesSayNothingOfTheServer(t *testing.T) {
	client := newThrottled(t, closed(), penstockredis.Options{}, rejecting)
	require.ErrorIs(t, client.Get(t.Context(), "a").Err(), core.ErrBlocked)
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
	require.ErrorIs(t, err, core.ErrBlocked)
	accepted, rejected := client.counted("redis")
	assert.Zero(t, accepted+rejected)
}

func TestThrottleLooksAtCommandsWithoutAResource(t *testing.T) {
	client := newThrottled(t, closed(), penstockredis.Options{
		Resource: func(context.Context, redis.Cmder) string { return "" },
		Pipeline: func(context.Context, []redis.Cmder) string { return "" },
	}, rejecting)
	_ = client.Get(t.Context(), "a").Err()
	_, _ = client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
	_, rejected := client.counted("redis")
	assert.EqualValues(t, 2, rejected)
}

func TestTargetNamesServers(t *testing.T) {
	options := penstockredis.Options{
		Target: func(_ context.Context, cmds []redis.Cmder) string {
			if len(cmds) > 1 {
				return "pipelines"
			}
			return map[string]string{"a": "first", "b": "second"}[cmds[0].Args()[1].(string)]
		},
		Answer: func(_ redis.Cmder, err error) outgoing.Answer {
			answer := penstockredis.Answer(err)
			if answer.Result == outgoing.Rejected {
				answer.RetryAfter = time.Second
			}
			return answer
		},
	}
	client := newThrottled(t, rules.Set{}, options, func(_ context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 1 && cmds[0].Args()[1] == "a" {
			return busy
		}
		return nil
	})
	get := func(key string) error { return client.Get(t.Context(), key).Err() }
	pipelined := func() error {
		_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			pipe.Get(t.Context(), "a")
			return pipe.Get(t.Context(), "a").Err()
		})
		return err
	}
	require.ErrorIs(t, get("a"), busy)
	require.ErrorIs(t, get("a"), outgoing.ErrPaused, "its Answer had a delay")
	require.NoError(t, get("b"))
	require.NoError(t, pipelined())
	require.NoError(t, get("c"), "no target")
	accepted, rejected := client.counted("first")
	assert.Equal(t, []uint64{0, 1}, []uint64{accepted, rejected})
	accepted, _ = client.counted("second")
	assert.EqualValues(t, 1, accepted)
	accepted, _ = client.counted("pipelines")
	assert.EqualValues(t, 1, accepted)
	assert.Len(t, client.throttle.Stats().Targets, 3)
}

func TestThrottledPipelineTellsAllItsCommands(t *testing.T) {
	client := newThrottled(t, rules.Set{}, penstockredis.Options{Answer: func(redis.Cmder, error) outgoing.Answer {
		return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Minute}
	}}, rejecting)
	require.ErrorIs(t, client.Get(t.Context(), "a").Err(), busy)
	cmds, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Get(t.Context(), "a")
		return pipe.Get(t.Context(), "b").Err()
	})
	require.ErrorIs(t, err, outgoing.ErrPaused)
	for _, cmd := range cmds {
		require.ErrorIs(t, cmd.Err(), outgoing.ErrPaused)
	}
	require.ErrorIs(t, client.Do(t.Context(), "readonly").Err(), busy, "what sets connections up always passes")
}

func TestThrottlingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what is in pools")
	}
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{})
	require.NoError(t, err)
	hook := newHookedWith(t, rules.Set{}, penstockredis.Options{Throttle: throttle, RetryBudgets: budgets})
	ctx := context.Background()
	get := redis.NewStringCmd(ctx, "get", "a")
	pipeline := []redis.Cmder{get, get}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = hook.process(ctx, get) }), "command")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = hook.pipeline(ctx, pipeline) }), "pipeline")
}
