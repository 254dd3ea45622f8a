package penstockredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestAnswersOfTheServerAreJudgedByWhomTheyBlame(t *testing.T) {
	for answer, want := range map[string]adaptertest.Outcome{
		"LOADING Redis is loading the dataset in memory":                      failed,
		"READONLY You can't write against a read only replica.":               failed,
		"OOM command not allowed when used memory > 'maxmemory'.":             failed,
		"MISCONF Redis is configured to save RDB snapshots":                   failed,
		"BUSY Redis is busy running a script.":                                failed,
		"NOREPLICAS Not enough good replicas to write.":                       failed,
		"MASTERDOWN Link with MASTER is down":                                 failed,
		"CLUSTERDOWN The cluster is down":                                     failed,
		"TRYAGAIN Multiple keys request during rehashing of slot":             failed,
		"IOERR error or timeout writing to target instance":                   failed,
		"ERR max number of clients reached":                                   failed,
		"ERR LOADING of a proxy":                                              failed,
		"EXECABORT Transaction discarded because of: OOM command not allowed": failed,
		"EXECABORT Transaction discarded because of previous errors.":         failed,
		"WRONGTYPE Operation against a key holding the wrong kind of value":   succeeded,
		"ERR syntax error":                                                        succeeded,
		"ERR unknown command 'LOADING'":                                           succeeded,
		"NOAUTH Authentication required.":                                         succeeded,
		"WRONGPASS invalid username-password pair":                                succeeded,
		"NOPERM this user has no permissions to run the 'get' command":            succeeded,
		"NOSCRIPT No matching script. Please use EVAL.":                           succeeded,
		"BUSYGROUP Consumer Group name already exists":                            succeeded,
		"BUSYKEY Target key name already exists.":                                 succeeded,
		"CROSSSLOT Keys in request don't hash to the same slot":                   succeeded,
		"EXECABORT Transaction discarded because of: WRONGTYPE Operation against": succeeded,
	} {
		t.Run(answer, func(t *testing.T) {
			seen, engine := record(t, "command")
			server := newServer(t)
			client := newClient(t, server.Addr(), engine, penstockredis.Options{})
			require.NoError(t, client.Ping(t.Context()).Err())
			server.SetError(answer)
			require.EqualError(t, client.Get(t.Context(), "a").Err(), answer)
			_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
			require.EqualError(t, err, answer)
			assert.Equal(t, outcomes(succeeded, want, want), seen.Outcomes())
		})
	}
}

// lateContext is a context whose deadline comes when it is cancelled.
type lateContext struct{ context.Context }

func (c lateContext) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func TestOutcomesOfCommands(t *testing.T) {
	const canceled, late = "canceled", "late" // while the command is under way
	refused := &core.BlockError{Kind: rule.Kind("other")}
	injected := &core.BlockError{Kind: rule.Kind("fault"), Reason: rule.Injected}
	for _, test := range []struct {
		name string
		ends string // how its context ends; "" if it does not
		err  error
		want adaptertest.Outcome
	}{
		{"answered", "", nil, succeeded},
		{"no such key", "", redis.Nil, succeeded},
		{"changed while watched", "", redis.TxFailedErr, succeeded},
		{"no connection", "", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, failed},
		{"connection broken", "", io.EOF, failed},
		{"pool exhausted", "", errors.New("redis: connection pool timeout"), failed},
		{"at the deadline", late, context.DeadlineExceeded, failed},
		{"cancelled by its caller", canceled, context.Canceled, ignored},
		{"broken after its caller had left", canceled, fmt.Errorf("read: %w", net.ErrClosed), ignored},
		{"answered after its caller had left", canceled, redis.Nil, succeeded},
		{"client closed", "", redis.ErrClosed, ignored},
		{"refused further down", "", refused, ignored},
		{"fault injected further down", "", injected, failed},
		{"not to be sent", "", errors.New("redis: can't marshal struct {} (implement encoding.BinaryMarshaler)"), succeeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen, engine := record(t, "command")
			client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
			cancel := func() {}
			client.AddHook(answering(func(ctx context.Context, _ []redis.Cmder) error {
				if test.ends != "" {
					cancel()
					<-ctx.Done()
				}
				return test.err
			}))
			newContext := func() (ctx context.Context) {
				ctx, cancel = context.WithCancel(t.Context())
				t.Cleanup(cancel)
				if test.ends == late {
					return lateContext{ctx}
				}
				return ctx
			}
			assert.Equal(t, test.err, client.Get(newContext(), "a").Err())
			pipeline := func(errs ...error) {
				pipe, ctx := client.Pipeline(), newContext()
				for _, err := range errs {
					pipe.Get(ctx, "a").SetErr(err)
				}
				_, _ = pipe.Exec(ctx)
			}
			pipeline(nil)
			pipeline(nil, test.err, redis.Nil)
			assert.Equal(t, outcomes(test.want, test.want, test.want), seen.Outcomes(), "single, pipeline, command of a pipeline")
		})
	}
}

func TestCommandOfAPipelineThatFailedCountsBesideOnesThatTellNothing(t *testing.T) {
	leave := func() {}
	seen, engine := record(t, "command")
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
	errs := []error{redis.Nil, io.EOF, nil}
	answers := answering(func(_ context.Context, cmds []redis.Cmder) error {
		leave()
		for i, cmd := range cmds {
			cmd.SetErr(errs[i])
		}
		return errs[0]
	})
	client.AddHook(answers)
	run := func(ctx context.Context) {
		_, _ = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Get(ctx, "a")
			pipe.Get(ctx, "b")
			pipe.Get(ctx, "c")
			return nil
		})
	}
	run(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	leave = cancel
	run(ctx)
	assert.Equal(t, outcomes(failed, ignored), seen.Outcomes())
}

func TestFailureDecides(t *testing.T) {
	seen, engine := record(t, "command")
	var asked []error
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{
		Failure: func(cmd redis.Cmder, err error) bool {
			asked = append(asked, err)
			return cmd.Name() == "get" && errors.Is(err, redis.Nil)
		},
	})
	var err error
	leave := func() {}
	client.AddHook(answering(func(context.Context, []redis.Cmder) error {
		leave()
		return err
	}))
	for _, err = range []error{nil, redis.Nil, io.EOF} {
		client.Get(t.Context(), "a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	leave = cancel
	client.Get(ctx, "a")
	assert.Equal(t, []error{redis.Nil, io.EOF, context.Canceled}, asked)
	assert.Equal(t, outcomes(succeeded, failed, succeeded, ignored), seen.Outcomes())
}

func TestNetworkFailuresAreFailures(t *testing.T) {
	seen, engine := record(t, "command")
	server := newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	require.NoError(t, client.Ping(t.Context()).Err())
	server.Close()
	require.Error(t, client.Get(t.Context(), "a").Err())
	_, err := client.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Get(t.Context(), "a").Err() })
	require.Error(t, err)
	assert.Equal(t, outcomes(succeeded, failed, failed), seen.Outcomes())
}

func TestBlockingCommandEndsWhenItIsSent(t *testing.T) {
	seen, engine := record(t, "command")
	server := newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{})
	popped := make(chan error)
	go func() { popped <- client.BLPop(t.Context(), 0, "jobs").Err() }()
	require.Eventually(t, func() bool { return totals(engine, "redis:BLPOP").Completed == 1 }, eventTimeout, time.Millisecond)
	assert.Zero(t, totals(engine, "redis:BLPOP").InFlight)
	require.NoError(t, client.LPush(t.Context(), "jobs", "work").Err())
	require.NoError(t, <-popped)
	_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		return pipe.BLPop(t.Context(), time.Millisecond, "jobs").Err()
	})
	require.ErrorIs(t, err, redis.Nil)
	assert.Equal(t, outcomes(ignored, succeeded, ignored), seen.Outcomes())
}

func TestBlockingCommandsCountLikeOthersIfOptionsSaySo(t *testing.T) {
	seen, engine := record(t, "command")
	server := newServer(t)
	client := newClient(t, server.Addr(), engine, penstockredis.Options{
		Blocking: func(context.Context, redis.Cmder) bool { return false },
	})
	require.ErrorIs(t, client.BLPop(t.Context(), time.Second, "jobs").Err(), redis.Nil)
	assert.Equal(t, outcomes(succeeded), seen.Outcomes())
}

func TestRefusedBlockingCommandIsNotSent(t *testing.T) {
	engine := newEngine(t, limited("redis:BLPOP", 0))
	client := newClient(t, "127.0.0.1:1", engine, penstockredis.Options{})
	require.ErrorIs(t, client.BLPop(t.Context(), 0, "jobs").Err(), core.ErrBlocked)
}

func TestIsBlocking(t *testing.T) {
	for _, test := range []struct {
		command []any
		blocks  bool
	}{
		{[]any{"BLPOP", "a", 1}, true},
		{[]any{"bzmpop", 1, 1, "a", "MIN"}, true},
		{[]any{"wait", 1, 0}, true},
		{[]any{"xread", "count", 1, "BLOCK", 0, "streams", "a", "0"}, true},
		{[]any{"xreadgroup", "group", "g", "c", "streams", "block", ">"}, false},
		{[]any{"xread", "streams", "a", "0"}, false},
		{[]any{"get", "block"}, false},
		{[]any{"lpop", "a"}, false},
	} {
		assert.Equal(t, test.blocks, penstockredis.IsBlocking(redis.NewCmd(t.Context(), test.command...)), test.command)
	}
}
